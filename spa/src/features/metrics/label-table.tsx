import type { LabelScore } from "@/client/schema";
import { count, score } from "@/ui/format";
import { ScrollBox } from "@/ui/scroll-box";
import classes from "./label-table.module.css";

/** Precision, recall and F1 of each label. */
export function LabelTable({ labels }: { labels: readonly LabelScore[] }) {
  return (
    <ScrollBox className={classes.scroll} label="Scores by label">
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">Label</th>
            <th scope="col">Precision</th>
            <th scope="col">Recall</th>
            <th scope="col">F1</th>
            <th scope="col">Items</th>
            <th scope="col">Predicted</th>
          </tr>
        </thead>
        <tbody>
          {labels.map((l) => (
            <tr key={l.label}>
              <th scope="row" title={l.label}>
                {l.label}
              </th>
              <Figure value={l.precision} />
              <Figure value={l.recall} />
              <Figure value={l.f1} />
              <td>{count(l.support)}</td>
              <td>{count(l.predicted)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}

function Figure({ value }: { value: number | null }) {
  return value === null ? <td title="Cannot be given: there are no such items">–</td> : <td>{score(value)}</td>;
}
