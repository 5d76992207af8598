import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import type { Backend } from "@/client/schema";
import { renderInApp } from "@/test/render";
import { RunsOn } from "./runs-on";
import { installCommand } from "./token-dialog";

const token = "potato_ABCDEFGHIJKLMNOPQRSTUVWXYZ";

function lab(agent: Partial<NonNullable<Backend["agent"]>> = {}): Backend {
  return {
    name: "lab-workstation",
    type: "agent",
    host: "",
    label: "lab-workstation (agent)",
    description: "",
    default: true,
    available: true,
    reason: "",
    agent: { registered: true, last_seen: null, agents: [], ...agent },
  };
}

function show(backend: Backend) {
  renderInApp(<RunsOn backends={[backend]} value={backend.name} onChange={() => {}} trainer="sklearn-text" />);
}

/** Answers for the server, and keeps what was asked. */
function serve(status: number, body: unknown): Request[] {
  const asked: Request[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(request);
    return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
  });
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

test("the place says when its agents were last seen (N4)", () => {
  const now = Date.now() / 1000;
  show(
    lab({
      last_seen: now - 120,
      agents: [
        { agent_id: "a", host: "gpu-1", version: "1", last_seen: now - 120 },
        { agent_id: "b", host: "gpu-2", version: "1", last_seen: now - 900 },
      ],
    }),
  );
  // Below the menu, and in it.
  expect(screen.getAllByText(/Agent on gpu-1 and 1 more last seen/)).toHaveLength(2);
  expect(screen.getAllByText("2 min ago")).toHaveLength(2);
});

test("a first token is issued at once and shown with the commands", async () => {
  const asked = serve(201, { backend: "lab-workstation", token, created_at: 1, replaced: false });
  show(lab({ registered: false }));
  expect(screen.getAllByText("No token issued yet")).toHaveLength(2);
  await userEvent.click(screen.getByRole("button", { name: "Register" }));
  await screen.findByText(/It is shown this once/);
  expect(asked[0]?.method).toBe("POST");
  expect(asked[0]?.url).toContain("/backends/lab-workstation/token");
  expect(screen.getByText(new RegExp(`export POTATO_TRAINING_TOKEN=${token}`)).textContent).toContain(
    "potato training agent --server http://localhost:3000 --backend lab-workstation",
  );
  await userEvent.click(screen.getByRole("button", { name: "Done" }));
  await vi.waitFor(() => expect(screen.queryByText(new RegExp(token))).toBeNull());
});

test("a token is replaced only after a question that says what happens", async () => {
  const asked = serve(201, { backend: "lab-workstation", token, created_at: 1, replaced: true });
  show(lab());
  await userEvent.click(screen.getByRole("button", { name: "Register again" }));
  await screen.findByText(/refused at once, also in the midst of a run/);
  await userEvent.click(screen.getByRole("button", { name: "Keep it" }));
  expect(asked).toHaveLength(0);
  await userEvent.click(screen.getByRole("button", { name: "Register again" }));
  await userEvent.click(await screen.findByRole("button", { name: "Replace it" }));
  await screen.findByText(/It is shown this once/);
});

test("a refusal is said, and no token is shown", async () => {
  serve(503, { title: "Service Unavailable", detail: "the disk is full", code: "disk_full", status: 503 });
  show(lab({ registered: false }));
  await userEvent.click(screen.getByRole("button", { name: "Register" }));
  await screen.findByText(/No token was issued/);
});

test("the agent is downloaded, checked and started, and nothing is piped into a shell", () => {
  const line = installCommand({ backend: "lab", token, created_at: 1, replaced: false }, "https://a.example.org");
  expect(line).not.toContain(token);
  expect(line).not.toMatch(/\|\s*(ba)?sh\b/);
  expect(line.indexOf("sha256sum -c")).toBeLessThan(line.indexOf("./potato-agent --server"));
});
