import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "@playwright/test";
import { expect, field, interpreter, program, test } from "./harness";

const home = "/admin/training";
const backend = "lab-workstation";

test.use({ training: ["backends:", `  ${backend}:`, "    type: agent"] });

const started: { process: ChildProcess; workdir: string }[] = [];

test.afterEach(async () => {
  for (const { process, workdir } of started.splice(0)) {
    if (process.exitCode === null) {
      const gone = new Promise((resolve) => process.once("exit", resolve));
      process.kill("SIGTERM");
      await gone;
    }
    rmSync(workdir, { recursive: true, force: true });
  }
});

/** An agent on this machine, until the test ends; `left` is its exit code and what it said. */
function agent(url: string, token: string): { left: Promise<{ code: number | null; said: string }> } {
  const workdir = mkdtempSync(join(tmpdir(), "potato-agent-"));
  const args = [
    "training",
    "agent",
    "--server",
    url,
    "--backend",
    backend,
    "--workdir",
    workdir,
    "--python",
    interpreter(),
  ];
  const child = spawn(program(), args, {
    env: { ...process.env, POTATO_TRAINING_TOKEN: token },
    stdio: ["ignore", "ignore", "pipe"],
  });
  started.push({ process: child, workdir });
  let said = "";
  child.stderr.on("data", (text) => {
    said += String(text);
  });
  return { left: new Promise((resolve) => child.once("exit", (code) => resolve({ code, said }))) };
}

async function choose(page: Page, url: string): Promise<void> {
  await page.goto(url + home);
  await page.getByRole("combobox", { name: "Runs on" }).click();
  await page.getByRole("option", { name: new RegExp(backend) }).click();
}

/** Reads the token off the dialog that has just issued it, and closes it. */
async function takeToken(page: Page): Promise<string> {
  const dialog = page.getByRole("dialog", { name: `Token for ${backend}` });
  await expect(dialog).toContainText("It is shown this once.");
  const commands = await dialog.locator("pre").allTextContents();
  const token = /^export POTATO_TRAINING_TOKEN=(potato_\S+)$/m.exec(commands[0] ?? "")?.[1] ?? "";
  expect(token).not.toBe("");
  expect(commands[0]).toContain(`potato training agent --server ${new URL(page.url()).origin} --backend ${backend}`);
  expect(commands[1]).toContain("potato-agent.sha256");
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect(dialog).toBeHidden();
  return token;
}

async function nowhere(page: Page, token: string): Promise<void> {
  expect(await page.content()).not.toContain(token);
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  expect(kept).not.toContain(token);
}

/** What the line below the menu says; the menu's own list has it too. */
function line(page: Page, text: string | RegExp): Locator {
  return page.locator("#root").getByText(text);
}

function report(page: Page): Locator {
  return page.getByRole("region", { name: "Check" });
}

test("a token is issued once, an agent trains with it, and a new one ends its access (K3, G2, G7, G8)", async ({
  page,
  server,
}) => {
  test.setTimeout(150_000); // an agent that waits for work hears within 30 s that its token is worth nothing
  await choose(page, server.url);
  await expect(line(page, "No token issued yet")).toBeVisible();
  await page.getByRole("button", { name: "Check", exact: true }).click();
  await expect(report(page).getByRole("status")).toContainText("no token issued yet");
  await expect(report(page)).toContainText(`potato training register ${backend}`);

  await page.getByRole("button", { name: "Register", exact: true }).click();
  const first = await takeToken(page);
  await nowhere(page, first);
  await expect(line(page, "No agent has used the token yet")).toBeVisible();
  await choose(page, server.url); // a reload does not bring it back
  await nowhere(page, first);
  expect(JSON.stringify(await server.call("GET", "/backends"))).not.toContain(first);

  await page.getByRole("button", { name: "Train", exact: true }).click();
  const now = page.getByRole("region", { name: "Now" });
  await expect(now).toContainText("queued");
  await expect(now).toContainText("an agent");
  await expect(now).toContainText(`potato training agent --server URL --backend ${backend}`);
  const old = agent(server.url, first);
  await expect(page.getByRole("row").nth(1)).toContainText("success", { timeout: 60_000 });

  await choose(page, server.url);
  await expect(line(page, /^Agent on \S+ last seen/)).toBeVisible();
  await page.getByRole("button", { name: "Check", exact: true }).click();
  await expect(report(page).getByRole("status")).toContainText("last_seen: ");
  await expect(report(page)).toContainText("first used");

  await page.getByRole("button", { name: "Register again" }).click();
  const question = page.getByRole("dialog", { name: `Replace the token of ${backend}?` });
  await question.getByRole("button", { name: "Keep it" }).click();
  await expect(question).toBeHidden();
  await page.getByRole("button", { name: "Register again" }).click();
  await question.getByRole("button", { name: "Replace it" }).click();
  const second = await takeToken(page);
  expect(second).not.toBe(first);
  const left = await old.left;
  expect(left.code).toBe(1);
  expect(left.said.toLowerCase()).toContain("this token was replaced by a newer one");
  await expect(line(page, "No agent has used the token yet")).toBeVisible();
});

test("a run's page has what its agent did (DESIGN §3)", async ({ page, server }) => {
  const token = field(await server.call("POST", `/backends/${backend}/token`), "token");
  agent(server.url, token);
  const request = { trainer: "sklearn-text", schemas: ["sentiment"], backend };
  const id = field(await server.call("POST", "/runs", request), "run_id");
  expect(await server.ended(id)).toBe("success");
  await page.goto(`${server.url}${home}/runs/${id}?tab=log&source=agent`);
  await expect(page.getByText("the server has the predictions")).toBeVisible();
  await expect(page.getByText(/claimed by the agent/)).toBeVisible();
  await nowhere(page, token);
});
