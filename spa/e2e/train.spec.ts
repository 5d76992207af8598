import { expect, slow, test } from "./harness";

const home = "/admin/training";

test("a run trained from the page is followed to its scores without a reload (A1, N8)", async ({ page, server }) => {
  await page.goto(server.url + home);
  await expect(
    page.getByText(/labelled · positive \d+, negative \d+ · α 0\.\d\d · predicts [\d,]+ unlabelled/),
  ).toBeVisible();
  await page.getByRole("button", { name: "Train", exact: true }).click();
  await expect(page.getByText("The run has started.")).toBeVisible();
  const row = page.getByRole("row").nth(1);
  await expect(row).toContainText("success");
  await row.getByRole("link").click();

  await expect(
    page.getByText(/^0\.\d\d accuracy on \d+ test items \(train 0\.\d\d\) · macro-F1 0\.\d\d$/),
  ).toBeVisible();
  await expect(page.getByText("from this page")).toBeVisible();
});

test("a change made elsewhere shows within 2 s (N8)", async ({ page, server }) => {
  await page.goto(server.url + home);
  await expect(page.getByText("Queue: empty")).toBeVisible();
  const id = await server.train(slow);
  await expect(page.getByRole("region", { name: "Now" })).toContainText("running", { timeout: 2000 });
  await expect(page.getByRole("row", { name: new RegExp(id.slice(-6)) })).toBeVisible({ timeout: 2000 });

  await server.call("POST", `/runs/${id}/cancel`);
  expect(await server.ended(id)).toBe("cancelled");
  await expect(page.getByRole("region", { name: "Now" })).toBeHidden({ timeout: 2000 });
  await expect(page.getByText("Queue: empty")).toBeVisible();
  await expect(page.getByTestId("announcements")).toHaveText(`Run ${id.slice(-6)}: cancelled`);
});

test("a second run waits and says its place; both can be cancelled from the page", async ({ page, server }) => {
  const first = await server.train(slow);
  const second = await server.train(slow);
  await page.goto(server.url + home);
  const now = page.getByRole("region", { name: "Now" });
  await expect(now).toContainText("queued");
  await expect(now).toContainText("next in the queue");
  for (const [id, question] of [
    [second, /out of the queue\?$/],
    [first, /lose what it has trained so far\?$/],
  ] as const) {
    await page.getByRole("button", { name: `Cancel run ${id.slice(-6)}` }).click();
    const dialog = page.getByRole("dialog", { name: question });
    await expect(dialog).toBeVisible();
    await dialog.getByRole("button", { name: "Cancel run" }).click();
    await expect(dialog).toBeHidden();
    expect(await server.ended(id)).toBe("cancelled");
  }
  await expect(now).toBeHidden();
});

test("the check opens beside the menu with its verdict and items (A1)", async ({ page, server }) => {
  await page.goto(server.url + home);
  await expect(page.getByRole("combobox", { name: "Runs on" })).toHaveValue("local (this machine)");
  await page.getByRole("button", { name: "Check", exact: true }).click();
  const report = page.getByRole("region", { name: "Check" });
  await expect(report.getByRole("status")).not.toBeEmpty();
  await expect(report.getByRole("listitem").first()).toBeVisible();
  await report.getByRole("button", { name: "Close the check" }).click();
  await expect(report).toBeHidden();
});

test("filters live in the address", async ({ page, server }) => {
  expect(await server.ended(await server.train())).toBe("success");
  await page.goto(`${server.url + home}?status=success&sort=-score`);
  await expect(page.getByRole("combobox", { name: "Status" })).toHaveValue("success");
  await expect(page.getByRole("columnheader", { name: "Held-out score" })).toHaveAttribute("aria-sort", "descending");
  await page.getByRole("searchbox", { name: "Search runs" }).fill("nothing has this");
  await expect(page.getByText("No run fits these filters")).toBeVisible();
  await expect(page).toHaveURL(/q=nothing\+has\+this/);
  await page.getByRole("button", { name: "Show all runs" }).click();
  await expect(page.getByRole("row").nth(1)).toBeVisible();
  await expect(page).not.toHaveURL(/q=/);
});
