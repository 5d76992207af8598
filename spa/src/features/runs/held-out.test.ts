import { expect, test } from "vitest";
import { sampleRun } from "@/test/samples";
import { bestRuns, heldOut, heldOutOf, scoreSentence } from "./held-out";

test("a held-out score is never a figure on training rows", () => {
  expect(heldOut(sampleRun({ metrics: { train_accuracy: 0.97, accuracy: 0.97, train_macro_f1: 0.96 } }))).toBeNull();
  expect(heldOut(sampleRun({ metrics: { test_accuracy: null, val_accuracy: null, train_accuracy: 0.97 } }))).toBeNull();
});

test("the test split comes before the validation split", () => {
  const metrics = {
    test_accuracy: 0.84,
    test_macro_f1: 0.83,
    val_accuracy: 0.9,
    val_macro_f1: 0.9,
    train_accuracy: 0.97,
  };
  expect(heldOut(sampleRun({ metrics }))).toEqual({ split: "test", accuracy: 0.84, macroF1: 0.83, n: 76 });
  expect(heldOut(sampleRun({ metrics: { ...metrics, test_accuracy: null } }))?.split).toBe("val");
});

test("a score of nought is a score", () => {
  expect(heldOut(sampleRun({ metrics: { test_accuracy: 0 } }))?.accuracy).toBe(0);
});

test("each scheme has its own", () => {
  const run = sampleRun({
    schema_names: ["sentiment", "topic"],
    metrics: { test_accuracy: 0.84 },
    metrics_by_schema: { topic: { val_accuracy: 0.6 } },
  });
  expect(heldOutOf(run, "sentiment")?.accuracy).toBe(0.84);
  expect(heldOutOf(run, "topic")).toMatchObject({ split: "val", accuracy: 0.6, n: 48 });
  expect(heldOutOf(run, "other")).toBeNull();
});

test("the sentence says on how many items", () => {
  expect(scoreSentence({ split: "test", accuracy: 0.84, macroF1: 0.83, n: 76 }, 0.97)).toBe(
    "0.84 accuracy on 76 test items (train 0.97) · macro-F1 0.83",
  );
  expect(scoreSentence({ split: "val", accuracy: 0.7, macroF1: null, n: 1200 }, null)).toBe(
    "0.70 accuracy on 1,200 validation items",
  );
});

test("the best is marked among runs of one main scheme, where there is a choice", () => {
  const run = (run_id: string, scheme: string, accuracy: number | null) =>
    sampleRun({ run_id, schema_names: [scheme], metrics: { test_accuracy: accuracy, train_accuracy: 1 } });
  const runs = [
    run("a", "sentiment", 0.7),
    run("b", "sentiment", 0.8),
    run("c", "topic", 0.9),
    run("d", "sentiment", null),
  ];
  expect([...bestRuns(runs)]).toEqual(["b"]);
});
