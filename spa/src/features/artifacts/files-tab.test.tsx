import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { renderInApp } from "@/test/render";
import { FilesTab } from "./files-tab";

const uri = "gpu.example.org:/home/me/jobs/r1/artifacts";

/** Answers for the server: the list to a GET, the status and body to the POST that copies again. */
function serve(status: number, body: unknown): string[] {
  const asked: string[] = [];
  const list = { artifacts: [{ path: "model.bin", bytes: 5, sha256: "", where: "host" }] };
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(`${request.method} ${new URL(request.url).pathname}`);
    const get = request.method === "GET";
    return new Response(JSON.stringify(get ? list : body), {
      status: get ? 200 : status,
      headers: { "Content-Type": "application/json" },
    });
  });
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

test("files that stayed on the training machine are copied again", async () => {
  const asked = serve(202, { run_id: "r1", started: true });
  renderInApp(<FilesTab runId="r1" final uri={uri} step="" canCopy />);
  await userEvent.click(await screen.findByRole("button", { name: "Copy again" }));
  expect(asked).toContain("POST /admin/training/api/runs/r1/artifacts");
});

test("why there is nothing to copy is said", async () => {
  serve(409, { status: 409, code: "nothing_to_copy", detail: "run r1 has no files to copy" });
  renderInApp(<FilesTab runId="r1" final uri={uri} step="" canCopy />);
  await userEvent.click(await screen.findByRole("button", { name: "Copy again" }));
  expect((await screen.findByRole("alert")).textContent).toContain("run r1 has no files to copy");
});

test("a machine that the server cannot reach has no button", async () => {
  serve(202, {});
  renderInApp(<FilesTab runId="r1" final uri={uri} step="" canCopy={false} />);
  expect(await screen.findByText(`They lie in ${uri}`)).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Copy again" })).toBeNull();
});

test("a copy under way says how far it is", async () => {
  serve(202, {});
  renderInApp(<FilesTab runId="r1" final uri={uri} step="copying the model from gpu: 1 of 5 MB" canCopy />);
  expect(await screen.findByText("copying the model from gpu: 1 of 5 MB")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Copy again" }).hasAttribute("disabled")).toBe(true);
});
