import type { Run } from "@/client/schema";
import { score } from "@/ui/format";
import classes from "./result-table.module.css";
import { noScoreWords } from "./words";

const splits = [
  ["test", "test"],
  ["val", "validation"],
] as const;

/** The held-out figures of each scheme on each split; figures on training rows have no place here. */
export function ResultTable({ run }: { run: Run }) {
  const rows = run.schema_names.flatMap((schema, i) => {
    const metrics = run.metrics_by_schema[schema] ?? (i === 0 ? run.metrics : {});
    return splits.flatMap(([split, word]) => {
      const figures = [metrics[`${split}_accuracy`], metrics[`${split}_macro_f1`], metrics[`${split}_ece`]];
      return figures.every((f) => f == null) ? [] : [{ key: `${schema} ${split}`, schema, word, figures }];
    });
  });
  if (rows.length === 0) {
    return <p className={classes.none}>Nothing to go by: {noScoreWords(run)}.</p>;
  }
  const many = run.schema_names.length > 1;
  return (
    <table className={classes.table}>
      <thead>
        <tr>
          <th scope="col">Held-out</th>
          <th scope="col">Accuracy</th>
          <th scope="col">Macro-F1</th>
          <th scope="col" title="Expected calibration error: how far the confidence is off, on average">
            Calibration error
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, schema, word, figures: [accuracy, f1, ece] }) => (
          <tr key={key}>
            <th scope="row">
              {many && `${schema}, `}
              {word}
            </th>
            <Figure value={accuracy} />
            <Figure value={f1} />
            <Figure value={ece} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Figure({ value }: { value: number | null | undefined }) {
  return <td>{value == null ? "–" : score(value)}</td>;
}
