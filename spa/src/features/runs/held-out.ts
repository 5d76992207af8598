import type { Run } from "@/client/schema";
import { count, score } from "@/ui/format";

/** An accuracy on items that the model never saw, and how many they were. */
export interface HeldOut {
  split: "test" | "val";
  accuracy: number;
  macroF1: number | null;
  n: number;
}

type Metrics = Run["metrics"];

/** The held-out score of a run's first scheme: on its test items, else on its validation items, never on training rows. */
export function heldOut(run: Pick<Run, "metrics" | "n_test" | "n_val">): HeldOut | null {
  return fromMetrics(run.metrics, run.n_test, run.n_val);
}

/** The same for a scheme of its own. */
export function heldOutOf(run: Run, schema: string): HeldOut | null {
  const metrics = run.metrics_by_schema[schema] ?? (schema === run.schema_names[0] ? run.metrics : undefined);
  return metrics ? fromMetrics(metrics, run.n_test, run.n_val) : null;
}

function fromMetrics(metrics: Metrics, nTest: number, nVal: number): HeldOut | null {
  const test = metrics.test_accuracy;
  if (test != null) {
    return { split: "test", accuracy: test, macroF1: metrics.test_macro_f1 ?? null, n: nTest };
  }
  const val = metrics.val_accuracy;
  if (val != null) {
    return { split: "val", accuracy: val, macroF1: metrics.val_macro_f1 ?? null, n: nVal };
  }
  return null;
}

const splitWords = { test: "test", val: "validation" };

/** "0.84 accuracy on 76 test items (train 0.97) · macro-F1 0.83". */
export function scoreSentence(held: HeldOut, trainAccuracy: number | null | undefined): string {
  const train = trainAccuracy == null ? "" : ` (train ${score(trainAccuracy)})`;
  const f1 = held.macroF1 == null ? "" : ` · macro-F1 ${score(held.macroF1)}`;
  return `${score(held.accuracy)} accuracy on ${count(held.n)} ${splitWords[held.split]} items${train}${f1}`;
}

/**
 * The ids of the best runs among those listed: one for each main scheme, since scores of different schemes do not
 * compare, and none where a scheme has a single scored run.
 */
export function bestRuns(runs: readonly Run[]): Set<string> {
  const best = new Map<string, { id: string; accuracy: number; rivals: number }>();
  for (const run of runs) {
    const held = heldOut(run);
    if (!held || run.status !== "success") {
      continue;
    }
    const scheme = run.schema_names[0] ?? "";
    const leader = best.get(scheme);
    if (!leader) {
      best.set(scheme, { id: run.run_id, accuracy: held.accuracy, rivals: 0 });
    } else if (held.accuracy > leader.accuracy) {
      best.set(scheme, { id: run.run_id, accuracy: held.accuracy, rivals: leader.rivals + 1 });
    } else {
      leader.rivals++;
    }
  }
  return new Set([...best.values()].filter((b) => b.rivals > 0).map((b) => b.id));
}
