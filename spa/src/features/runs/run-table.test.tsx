import { screen, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { Run } from "@/client/schema";
import { renderInApp } from "@/test/render";
import { sampleRun } from "@/test/samples";
import { RunTable } from "./run-table";

function cellsOf(run: Run) {
  renderInApp(<RunTable runs={[run]} best={new Set()} sort="-created_at" onSort={vi.fn()} />);
  const headers = screen.getAllByRole("columnheader").map((h) => h.textContent);
  const row = screen.getAllByRole("row")[1];
  if (!row) {
    throw new Error("there is no row");
  }
  const cells = [...within(row).getAllByRole("rowheader"), ...within(row).getAllByRole("cell")];
  return (name: string) => cells[headers.indexOf(name)]?.textContent;
}

test("the held-out column shows no training figure when there is no other", () => {
  const cell = cellsOf(sampleRun({ metrics: { train_accuracy: 0.933 } }));
  expect(cell("Held-out score")).toBe("no held-out score");
  expect(document.body.textContent).not.toContain("0.93");
});

test("the held-out column shows the score and on how many items", () => {
  const cell = cellsOf(sampleRun({ metrics: { test_accuracy: 0.84, train_accuracy: 0.97 } }));
  expect(cell("Held-out score")).toBe("0.84on 76 items");
});

test("a failed run says why where its score would be", () => {
  const cell = cellsOf(sampleRun({ status: "error", error: "No GPU has 4000 MB free" }));
  expect(cell("Held-out score")).toBe("No GPU has 4000 MB free");
});

test("only what is published now counts", () => {
  const writeback = {
    n_read: 1712,
    n_written: 1436,
    n_skipped_train_split: 0,
    n_skipped_schema_not_enabled: 0,
    n_skipped_rejected: 0,
    n_skipped_low_confidence: 276,
    n_skipped_missing_item: 0,
    n_skipped_unknown_label: 0,
    schemas_enabled: ["sentiment"],
    warnings: [],
  };
  expect(cellsOf(sampleRun({ writeback, n_published: 0 }))("Predictions published")).toBe("–");
  document.body.innerHTML = "";
  expect(cellsOf(sampleRun({ writeback, n_published: 1436 }))("Predictions published")).toBe("1,436");
});

test("a waiting run says its place", () => {
  const cell = cellsOf(sampleRun({ status: "queued", queue: { position: 2, waiting_for: "the run ahead" } }));
  expect(cell("Held-out score")).toBe("number 2 in the queue");
});
