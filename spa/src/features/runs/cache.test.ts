import { type InfiniteData, QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import type { RunList, Status } from "@/client/schema";
import { sampleRun } from "@/test/samples";
import { patchRun, withRun } from "./cache";
import { runKeys } from "./queries";

const idle: Status = {
  state: "idle",
  run_id: null,
  running: [],
  queued: [],
  project_name: "Reviews",
  skip_reason: "",
  version: "1",
  warnings: [],
};

test("a run moves between the lists of the status as its state does", () => {
  const queued = sampleRun({ status: "queued" });
  const waiting = withRun(idle, queued);
  expect([waiting.queued.length, waiting.running.length]).toEqual([1, 0]);
  const going = withRun(waiting, { ...queued, status: "running", step: "fitting" });
  expect([going.queued.length, going.running[0]?.step]).toEqual([0, "fitting"]);
  const ended = withRun(going, { ...queued, status: "success" });
  expect([ended.queued.length, ended.running.length]).toEqual([0, 0]);
});

test("a change reaches every place that shows the run", () => {
  const client = new QueryClient();
  const before = sampleRun({ status: "running", step: "fitting" });
  client.setQueryData(runKeys.status, withRun(idle, before));
  client.setQueryData(runKeys.one(before.run_id), before);
  const lists: InfiniteData<RunList> = {
    pages: [{ runs: [sampleRun({ run_id: "other" }), before] }],
    pageParams: [""],
  };
  client.setQueryData(runKeys.list({ trainer: "sklearn-text" }), lists);

  const after = { ...before, step: "scoring" };
  expect(patchRun(client, after).before).toBe("running");
  expect(client.getQueryData(runKeys.one(before.run_id))).toEqual(after);
  expect(client.getQueryData<Status>(runKeys.status)?.running).toEqual([after]);
  const list = client.getQueryData<InfiniteData<RunList>>(runKeys.list({ trainer: "sklearn-text" }));
  expect(list?.pages[0]?.runs.map((r) => r.step)).toEqual(["", "scoring"]);
  expect(client.getQueryState(runKeys.list({ trainer: "sklearn-text" }))?.isInvalidated).toBe(false);
});

test("a new state makes the lists ask again, since filters and order may depend on it", () => {
  const client = new QueryClient();
  const before = sampleRun({ status: "running" });
  client.setQueryData(runKeys.one(before.run_id), before);
  client.setQueryData(runKeys.list({}), { pages: [{ runs: [before] }], pageParams: [""] });
  patchRun(client, { ...before, status: "success" });
  expect(client.getQueryState(runKeys.list({}))?.isInvalidated).toBe(true);
});
