import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect, key, slow, test } from "./harness";

const home = "/admin/training";

test("the key opens the page, a wrong one does not, and signing out closes it (A3)", async ({ browser, server }) => {
  const page = await browser.newPage();
  await page.goto(server.url + home);
  await page.getByLabel("Admin key").fill("not the key at all");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("This is not the admin key.");
  await page.getByLabel("Admin key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("region", { name: "Train" })).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Admin key")).toBeVisible();
  await page.close();
});

test("the keys lead where they say", async ({ page, server }) => {
  const id = await server.train();
  await server.ended(id);
  await page.goto(`${server.url}${home}/runs/${id}?tab=predictions`);
  await expect(page.getByRole("searchbox", { name: "Search predictions" })).toBeVisible();
  await page.keyboard.press("/");
  await expect(page.getByRole("searchbox", { name: "Search predictions" })).toBeFocused();
  await page.keyboard.type("t"); // typing is not a shortcut
  await expect(page).toHaveURL(/runs/);
  await page.keyboard.press("Tab");
  await page.keyboard.press("t");
  await expect(page.getByRole("region", { name: "Train" }).getByRole("combobox", { name: "Trainer" })).toBeFocused();
  await page.goto(`${server.url}${home}/runs/${id}`);
  await expect(page.getByRole("heading", { name: id })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await expect(page.getByRole("region", { name: "Runs" })).toBeFocused();
});

test("the theme is chosen, kept, and there before the first paint", async ({ page, server }) => {
  await page.goto(server.url + home);
  const root = page.locator("html");
  await page.getByRole("button", { name: "Theme: as the system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).click();
  await expect(root).toHaveAttribute("data-mantine-color-scheme", "dark");
  await page.reload();
  await expect(page.getByRole("button", { name: "Theme: dark" })).toBeVisible();
  await expect(root).toHaveAttribute("data-mantine-color-scheme", "dark");
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`every page is clear of axe's findings and of sideways scrolling: ${colorScheme}`, async ({ page, server }) => {
    test.setTimeout(240_000);
    const good = await server.train();
    await server.ended(good);
    const bad = await server.train({ min_instances: 100_000 });
    await server.ended(bad);
    const going = await server.train(slow);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const paths = [
      "",
      `/runs/${bad}`,
      `/runs/${going}?tab=curves`,
      `/runs/${going}?tab=log`,
      ...["overview", "curves", "scores", "predictions", "log", "files", "details"].map(
        (t) => `/runs/${good}?tab=${t}`,
      ),
    ];
    for (const path of paths) {
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.goto(server.url + home + path);
      await expect(page.getByRole("contentinfo")).toBeVisible();
      await expect(page.getByText(/^Loading /)).toHaveCount(0);
      await check(page, `${path} at 1440`);
      for (const width of [820, 390]) {
        await page.setViewportSize({ width, height: 900 });
        await checkWidth(page, `${path} at ${width}`);
      }
      await check(page, `${path} at 390`);
    }
    await page.setViewportSize({ width: 390, height: 900 });
    await page.goto(server.url + home);
    await page.getByRole("button", { name: /^Cancel run/ }).click();
    await expect(page.getByRole("dialog")).toBeVisible();
    await check(page, "the dialog");
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toBeHidden();
    await expect(page.getByRole("button", { name: /^Cancel run/ })).toBeFocused();
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await expect(page.getByRole("region", { name: "Check" })).toBeVisible();
    await page.getByRole("button", { name: /^Parameters/ }).click();
    await check(page, "the form unfolded");
    await server.call("POST", `/runs/${going}/cancel`);
    await server.ended(going);
  });
}

async function check(page: Page, where: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.map(
    (v) =>
      `${v.id}: ${v.nodes
        .map((n) => n.html)
        .join(" | ")
        .slice(0, 400)}`,
  );
  expect.soft(found, where).toEqual([]);
  await checkWidth(page, where);
}

async function checkWidth(page: Page, where: string): Promise<void> {
  const over = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await expect.soft.poll(over, { message: `sideways scroll of ${where}`, timeout: 3000 }).toBe(0);
}
