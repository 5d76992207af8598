import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type APIRequestContext, test as base, expect, type Page } from "@playwright/test";

export const key = "an-admin-key-for-tests-only";

/** Parameters that make a run last long enough to be watched. */
export const slow = { classifier: "sgd", epochs: 10_000 };

interface Server {
  url: string;
  /** Calls the API with the key, as a program would. */
  call: (method: string, path: string, body?: unknown) => Promise<unknown>;
  /** Starts a run and gives its id. */
  train: (params?: Record<string, unknown>) => Promise<string>;
  /** Waits until a run has ended and gives its status. */
  ended: (id: string) => Promise<string>;
}

/** The program on a study of its own, one for each worker; `page` is signed in and reports what the policy forbids. */
export const test = base.extend<{ page: Page; complaints: string[] }, { server: Server; training: string[] }>({
  /** Lines that the study's config has below `model_training`. */
  training: [[], { scope: "worker", option: true }],
  server: [
    async ({ training }, use) => {
      const started = await start(training);
      await use(started.server);
      await started.stop();
    },
    { scope: "worker" },
  ],
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the pattern
  complaints: async ({}, use) => {
    await use([]);
  },
  page: async ({ page, server, complaints }, use) => {
    page.on("console", (message) => {
      if (message.type() === "error" && !/status of (401|4\d\d)/.test(message.text())) {
        complaints.push(message.text());
      }
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      if (!request.url().startsWith(server.url) && !request.url().startsWith("blob:")) {
        complaints.push(`a request leaves the server: ${request.url()}`);
      }
    });
    await signIn(page.request, server.url);
    await use(page);
    expect(complaints).toEqual([]);
  },
});

export { expect };

async function signIn(request: APIRequestContext, url: string): Promise<void> {
  const answer = await request.post(`${url}/admin/training/api/session`, { data: { api_key: key } });
  expect(answer.status()).toBe(204);
}

async function start(training: string[]): Promise<{ server: Server; stop: () => Promise<void> }> {
  const python = interpreter();
  mkdirSync("test-results", { recursive: true });
  const study = mkdtempSync(join(tmpdir(), "potato-page-"));
  cpSync(join(process.cwd(), "examples", "reviews"), study, { recursive: true });
  const config = join(study, "config.yaml");
  const text = readFileSync(config, "utf8")
    .replace('"change-me"', JSON.stringify(key))
    .replace(
      "  enabled: true\n",
      ["  enabled: true\n", `python: ${JSON.stringify(python)}\n`, ...training.map((line) => `${line}\n`)].join("  "),
    );
  writeFileSync(config, text, { mode: 0o600 });

  const child = spawn(program(), ["start", config, "--host", "127.0.0.1", "--port", "0"], {
    stdio: ["ignore", "pipe", openSync("test-results/server.log", "a")],
  });
  const url = await firstAddress(child);
  return {
    server: serverAt(url),
    stop: async () => {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await gone;
      rmSync(study, { recursive: true, force: true });
    },
  };
}

/** The built program. */
export function program(): string {
  return required(process.env.POTATO_BIN ?? join(process.cwd(), "bin", "potato"), "`make build` makes it");
}

export function interpreter(): string {
  return required(
    process.env.POTATO_TEST_PYTHON ?? join(process.cwd(), ".venv", "bin", "python"),
    "an interpreter with scikit-learn; `make unit` makes it",
  );
}

function required(path: string, hint: string): string {
  if (!existsSync(path)) {
    throw new Error(`missing: ${path} (${hint})`);
  }
  return path;
}

async function firstAddress(child: ChildProcess): Promise<string> {
  if (!child.stdout) {
    throw new Error("the program has no stdout");
  }
  for await (const line of createInterface(child.stdout)) {
    const found = /http:\/\/[\d.]+:\d+/.exec(line);
    if (found) {
      return found[0];
    }
  }
  throw new Error("the program ended before it had an address");
}

function serverAt(url: string): Server {
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${url}/admin/training/api${path}`, {
      method,
      headers: { "X-API-Key": key, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) {
      throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    }
    return text === "" ? undefined : JSON.parse(text);
  };
  return {
    url,
    call,
    train: async (params = {}) =>
      field(await call("POST", "/runs", { trainer: "sklearn-text", schemas: ["sentiment"], params }), "run_id"),
    ended: async (id) => {
      let status = "";
      await expect
        .poll(async () => (status = field(await call("GET", `/runs/${id}`), "status")), { timeout: 60_000 })
        .toMatch(/^(success|error|cancelled)$/);
      return status;
    },
  };
}

/** One text of an answer. */
export function field(answer: unknown, name: string): string {
  if (typeof answer === "object" && answer !== null && name in answer) {
    return String(Reflect.get(answer, name));
  }
  throw new Error(`the answer has no ${name}`);
}
