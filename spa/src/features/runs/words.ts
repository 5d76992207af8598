import type { Run, Writeback } from "@/client/schema";
import { count, counted } from "@/ui/format";

const triggers: Record<Run["trigger"], string> = {
  page: "from this page",
  api: "by api",
  auto: "by auto-retrain",
};

/** Who or what started the run. */
export function triggerWords(trigger: Run["trigger"]): string {
  return triggers[trigger];
}

/** The last six letters of an id: enough to tell runs apart, and what the stamp before them does not say. */
export function shortId(id: string): string {
  return id.slice(id.lastIndexOf("-") + 1);
}

/** What a waiting run waits for. */
export function queueWords(run: Run): string {
  return run.queue?.waiting_for ? `${placeWords(run)} · waits for ${run.queue.waiting_for}` : placeWords(run);
}

/** A waiting run's place. */
export function placeWords(run: Run): string {
  if (!run.queue) {
    return "in the queue";
  }
  return run.queue.position > 1 ? `number ${run.queue.position} in the queue` : "next in the queue";
}

/** How many items the run had labels for. */
export function labelsOf(run: Run): number {
  return run.n_train + run.n_val + run.n_test;
}

/** Why a run that succeeded has no held-out score; its warnings say more. */
export function noScoreWords(run: Run): string {
  return run.n_val + run.n_test === 0 ? "no held-out items" : "no held-out score";
}

/** The predictions that were not published, by reason, most frequent first; reasons that held nothing back are left out. */
export function skippedReasons(w: Writeback): { reason: string; n: number }[] {
  return [
    { reason: "the model was trained on the item", n: w.n_skipped_train_split },
    { reason: "the confidence is below min_confidence", n: w.n_skipped_low_confidence },
    { reason: "the scheme is not in writeback.schemas", n: w.n_skipped_schema_not_enabled },
    { reason: "a reviewer rejected it", n: w.n_skipped_rejected },
    { reason: "the item is no longer in the study", n: w.n_skipped_missing_item },
    { reason: "the label is no longer in the scheme", n: w.n_skipped_unknown_label },
  ]
    .filter((s) => s.n > 0)
    .sort((a, b) => b.n - a.n);
}

/** What became of the predictions, as one sentence. */
export function publishedSentence(w: Writeback, nPublished: number): string {
  if (w.schemas_enabled.length === 0) {
    return `${counted(w.n_read, "prediction")} stored, none published: writeback.schemas names no scheme`;
  }
  if (nPublished === 0 && w.n_written > 0) {
    return `${counted(w.n_written, "prediction")} were published, and none of them is now`;
  }
  const held = w.n_read - w.n_written;
  const rest = held > 0 ? `, ${count(held)} held back` : "";
  return `${counted(nPublished, "prediction")} published${rest}`;
}
