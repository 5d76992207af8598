import { Link } from "wouter";
import type { Confusion } from "@/client/schema";
import { count } from "@/ui/format";
import { runLink } from "@/ui/run-link";
import classes from "./confusion-matrix.module.css";

interface ConfusionMatrixProps {
  confusion: Confusion;
  runId: string;
  schema: string;
  split: "test" | "val";
}

/** Which labels are taken for which; each cell opens its items. */
export function ConfusionMatrix({ confusion, runId, schema, split }: ConfusionMatrixProps) {
  const { labels, counts } = confusion;
  return (
    <>
      <div className={classes.scroll}>
        <table className={classes.matrix}>
          <caption className="visually-hidden">Items by their own label (rows) and the predicted one (columns)</caption>
          <thead>
            <tr>
              <th scope="col" className={classes.corner}>
                labelled ↓ predicted →
              </th>
              {labels.map((label) => (
                <th key={label} scope="col" title={label}>
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {labels.map((target, row) => {
              const total = counts[row]?.reduce((a, b) => a + b, 0) ?? 0;
              return (
                <tr key={target}>
                  <th scope="row" title={target}>
                    {target}
                  </th>
                  {labels.map((label, column) => {
                    const n = counts[row]?.[column] ?? 0;
                    return (
                      <td key={label}>
                        <Cell
                          n={n}
                          share={total > 0 ? n / total : 0}
                          right={row === column}
                          label={`${count(n)} labelled ${target}, predicted ${label}`}
                          href={runLink(runId, { tab: "predictions", schema, split, target, label })}
                        />
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p className={classes.help}>Open a cell to read its items.</p>
    </>
  );
}

interface CellProps {
  n: number;
  share: number;
  right: boolean;
  label: string;
  href: string;
}

function Cell({ n, share, right, label, href }: CellProps) {
  if (n === 0) {
    return <span className={classes.zero}>0</span>;
  }
  // Depth tells how much of the row lies here; the text keeps its own colour, so the ground stays pale.
  const depth = `${Math.round(8 + share * 32)}%`;
  const ink = right ? "var(--accent-fill)" : "var(--danger-text)";
  return (
    <Link
      href={href}
      className={classes.cell}
      aria-label={label}
      title={label}
      style={{ background: `color-mix(in srgb, ${ink} ${depth}, var(--surface))` }}
    >
      {count(n)}
    </Link>
  );
}
