import { readFileSync } from "node:fs";
import { expect, field, slow, test } from "./harness";

const runPage = (url: string, id: string, query = "") => `${url}/admin/training/runs/${id}${query}`;

test("scores, and a cell of the confusion matrix opens its items (R4)", async ({ page, server }) => {
  const id = await server.train();
  expect(await server.ended(id)).toBe("success");
  await page.goto(runPage(server.url, id, "?tab=scores"));
  await expect(page.getByRole("region", { name: "By label", exact: true })).toContainText("Precision");
  await expect(page.getByRole("img", { name: /^Reliability diagram/ })).toBeVisible();
  await expect(page.getByText("On the training rows themselves")).toBeVisible();

  const cell = page.getByRole("link", { name: /labelled positive, predicted negative$/ });
  const n = Number(await cell.textContent());
  await cell.click();
  await expect(page).toHaveURL(/tab=predictions.*target=positive/);
  await expect(page.getByText(`1–${n} of ${n} prediction`)).toBeVisible();
});

test("predictions: pages, wrong ones, search, files, retract and show again (R8, N9)", async ({ page, server }) => {
  const id = await server.train();
  expect(await server.ended(id)).toBe("success");
  await page.goto(runPage(server.url, id, "?tab=predictions"));
  await expect(page.getByText(/^1–50 of [\d,]+ predictions$/)).toBeVisible();
  await page.getByRole("button", { name: "Next" }).click();
  await expect(page.getByText(/^51–100 of/)).toBeVisible();
  await page.getByRole("switch", { name: "Wrong only" }).click();
  await expect(page).toHaveURL(/wrong=true/);
  await expect(page.getByText("wrong: ").first()).toBeAttached();
  await expect(page.getByText("right: ")).toHaveCount(0);

  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: /^CSV/ }).click();
  const csv = readFileSync(await (await download).path(), "utf8")
    .trim()
    .split("\n");
  expect(csv[0]).toContain("instance_id");
  expect(csv.length).toBeGreaterThan(1);

  await page.getByRole("button", { name: "Retract" }).click();
  const asked = page.getByRole("dialog", { name: /^Retract [\d,]+ predictions from annotators\?$/ });
  await asked.getByRole("button", { name: "Retract" }).click();
  await expect(page.getByText("none of them is published")).toBeVisible();
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await page.getByRole("button", { name: "Publish them" }).click();
  await expect(page.getByText(/[\d,]+ of them are published/)).toBeVisible();
});

test("a run under way: progress, curves, a log that follows and stops following (N8)", async ({ page, server }) => {
  const id = await server.train(slow);
  await page.goto(runPage(server.url, id, "?tab=curves"));
  await expect(page.getByRole("progressbar")).toBeVisible();
  await expect(page.getByRole("img", { name: /^loss by step/ })).toBeVisible();
  await page.getByRole("tab", { name: "Log" }).click();
  await expect(page.getByText(/following the end/)).toBeVisible();
  await page.getByRole("link", { name: "Line 1", exact: true }).click();
  await expect(page).toHaveURL(/source=log&line=1/);
  await page.getByRole("button", { name: "Cancel run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
  await expect(page.getByText("cancelled", { exact: true }).first()).toBeVisible();
  await expect(page.getByRole("progressbar")).toBeHidden();
});

test("a failed run: the cause, the hint, the last lines, and the same request again (N7)", async ({ page, server }) => {
  const id = await server.train({ min_instances: 100_000 });
  expect(await server.ended(id)).toBe("error");
  await page.goto(runPage(server.url, id));
  const failed = await server.call("GET", `/runs/${id}`);
  const card = page.getByRole("region", { name: field(failed, "error") });
  await expect(card).toBeVisible();
  await expect(card.getByText(field(failed, "error_code"), { exact: true })).toBeVisible();
  await card.getByRole("button", { name: "Retry" }).click();
  await expect(page).not.toHaveURL(new RegExp(id));
  const again = page.url().split("/").at(-1) ?? "";
  expect(await server.ended(again)).toBe("error");
  await page.getByRole("tab", { name: "Details" }).click();
  await expect(page.getByText('"min_instances":100000')).toBeVisible();
});

test("files are there with their checksums, and come down", async ({ page, server }) => {
  const id = await server.train();
  expect(await server.ended(id)).toBe("success");
  await page.goto(runPage(server.url, id, "?tab=files"));
  const row = page.getByRole("row", { name: /predictions\.jsonl/ });
  await expect(row).toContainText("this server");
  const download = page.waitForEvent("download");
  await row.getByRole("link", { name: /Download/ }).click();
  expect(readFileSync(await (await download).path(), "utf8")).toContain('"instance_id"');
});

test("an address of no run says so", async ({ page, server }) => {
  await page.goto(runPage(server.url, "20200101T000000-000000"));
  await expect(page.getByRole("alert")).toContainText("Could not read run");
});
