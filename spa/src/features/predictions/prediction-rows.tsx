import type { PredictionRow } from "@/client/schema";
import { score } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { splitWords } from "./prediction-filter";
import classes from "./prediction-rows.module.css";

interface PredictionRowsProps {
  rows: readonly PredictionRow[];
  manySchemes: boolean;
}

/** One page of predictions; in a narrow window each row becomes a card of its own. */
export function PredictionRows({ rows, manySchemes }: PredictionRowsProps) {
  return (
    <table className={classes.table}>
      <thead>
        <tr>
          <th scope="col">Item</th>
          <th scope="col">Text</th>
          {manySchemes && <th scope="col">Scheme</th>}
          <th scope="col">Split</th>
          <th scope="col">Labelled</th>
          <th scope="col">Predicted</th>
          <th scope="col" className={classes.number}>
            Confidence
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={`${row.schema_name} ${row.instance_id}`} data-wrong={row.correct === false}>
            <th scope="row" className={classes.item}>
              {row.instance_id}
            </th>
            <td className={classes.text}>
              <span title={row.text}>{row.text}</span>
            </td>
            {manySchemes && <td className={`${classes.scheme} ${classes.quiet}`}>{row.schema_name}</td>}
            <td className={`${classes.split} ${classes.quiet}`}>{splitWords[row.split]}</td>
            <td className={classes.target}>{row.target.length > 0 ? row.target.join(", ") : "–"}</td>
            <td className={classes.label}>
              <span className={classes.predicted}>
                <Verdict correct={row.correct} />
                {labelText(row)}
              </span>
            </td>
            <td className={classes.number} title={scoresText(row)}>
              {row.confidence === null ? "–" : score(row.confidence)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Verdict({ correct }: { correct: boolean | null }) {
  if (correct === null) {
    return null;
  }
  return (
    <span className={classes.verdict} data-correct={correct}>
      <Icon name={correct ? "check" : "cross"} size={14} />
      <span className="visually-hidden">{correct ? "right: " : "wrong: "}</span>
    </span>
  );
}

function labelText(row: PredictionRow): string {
  const { label, labels } = row.payload;
  return labels ? labels.join(", ") || "none" : (label ?? "");
}

/** The probabilities behind the label, the likeliest first. */
function scoresText(row: PredictionRow): string {
  return Object.entries(row.payload.scores ?? {})
    .sort(([, a], [, b]) => b - a)
    .slice(0, 8)
    .map(([label, p]) => `${label} ${score(p)}`)
    .join(", ");
}
