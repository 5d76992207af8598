import { expect, test } from "vitest";
import type { Writeback } from "@/client/schema";
import { sampleRun } from "@/test/samples";
import { curlOf, requestOf } from "./request";
import { readFilter, writeFilter } from "./run-filter";
import { publishedSentence, queueWords, shortId, skippedReasons } from "./words";

const writeback: Writeback = {
  n_read: 1712,
  n_written: 1436,
  n_skipped_train_split: 3,
  n_skipped_schema_not_enabled: 0,
  n_skipped_rejected: 0,
  n_skipped_low_confidence: 273,
  n_skipped_missing_item: 0,
  n_skipped_unknown_label: 0,
  schemas_enabled: ["sentiment"],
  warnings: [],
};

test("says what became of predictions", () => {
  expect(publishedSentence(writeback, 1436)).toBe("1,436 predictions published, 276 held back");
  expect(publishedSentence(writeback, 0)).toBe("1,436 predictions were published, and none of them is now");
  expect(publishedSentence({ ...writeback, schemas_enabled: [] }, 0)).toContain("writeback.schemas names no scheme");
  expect(skippedReasons(writeback).map((s) => s.n)).toEqual([273, 3]);
});

test("says what a run waits for", () => {
  const run = sampleRun({ status: "queued", queue: { position: 1, waiting_for: "run d3d870" } });
  expect(queueWords(run)).toBe("next in the queue · waits for run d3d870");
  expect(queueWords({ ...run, queue: { position: 3, waiting_for: "" } })).toBe("number 3 in the queue");
});

test("the short id is what tells runs apart", () => {
  expect(shortId("20261129T192252-d3d870")).toBe("d3d870");
});

test("the command sends the same request, whatever is in it", () => {
  const run = sampleRun({ params: { note: "it's" } });
  expect(requestOf(run)).toEqual({
    trainer: "sklearn-text",
    schemas: ["sentiment"],
    backend: "local",
    params: { note: "it's" },
  });
  const command = curlOf(run, "http://host:8000");
  expect(command).toContain("http://host:8000/admin/training/api/runs");
  expect(command).toContain(
    `'{"trainer":"sklearn-text","schemas":["sentiment"],"backend":"local","params":{"note":"it'\\''s"}}'`,
  );
});

test("a filter comes through the address unharmed, and nonsense does not", () => {
  const filter = { status: "error", trainer: "sklearn-text", q: "a&b=c", sort: "-score" } as const;
  expect(readFilter(writeFilter(filter))).toEqual(filter);
  expect(readFilter(new URLSearchParams("status=fine&sort=size&q="))).toEqual({});
});
