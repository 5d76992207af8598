import type { SchemeSummary } from "@/client/schema";
import { count } from "@/ui/format";

const shownLabels = 5;

/** "412 labelled · positive 230, negative 182 · α 0.81 · predicts 1,588 unlabelled". */
export function labelledSentence(scheme: SchemeSummary): string {
  const labels = scheme.label_counts.slice(0, shownLabels).map((l) => `${l.label} ${count(l.n)}`);
  const more = scheme.label_counts.length - shownLabels;
  if (more > 0) {
    labels.push(`${more} more`);
  }
  return [
    `${count(scheme.n_labeled)} labelled`,
    labels.join(", "),
    scheme.agreement === null ? "" : `α ${scheme.agreement.toFixed(2)}`,
    scheme.n_unlabeled > 0
      ? `${scheme.predicts_unlabeled ? "predicts " : ""}${count(scheme.n_unlabeled)} unlabelled`
      : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
