import type { Bin } from "@/client/schema";
import { count, score } from "@/ui/format";
import { TableBehind } from "@/ui/table-behind";
import classes from "./reliability.module.css";

interface ReliabilityProps {
  bins: readonly Bin[];
  ece: number | null;
}

const size = 240;
const left = 36;
const bottom = 28;
const counts = 40; // room for the bars that tell how many items a bin holds
const x = (value: number) => left + value * size;
const y = (value: number) => counts + (1 - value) * size;

/** Whether the model is as sure as it is right: dots on the diagonal mean that its confidence can be believed. */
export function Reliability({ bins, ece }: ReliabilityProps) {
  if (bins.length === 0) {
    return <p className={classes.none}>The trainer gave no probabilities, so its confidence cannot be judged.</p>;
  }
  const most = Math.max(...bins.map((b) => b.n));
  return (
    <>
      <svg
        className={classes.plot}
        viewBox={`0 0 ${left + size + 8} ${counts + size + bottom}`}
        role="img"
        aria-label={`Reliability diagram of ${bins.length} bins; the table below has its figures`}
      >
        {[0, 0.25, 0.5, 0.75, 1].map((tick) => (
          <g key={tick}>
            <line className={classes.grid} x1={x(0)} x2={x(1)} y1={y(tick)} y2={y(tick)} />
            <text className={classes.tick} x={left - 6} y={y(tick) + 4} textAnchor="end">
              {tick}
            </text>
            <text className={classes.tick} x={x(tick)} y={y(0) + 14} textAnchor="middle">
              {tick}
            </text>
          </g>
        ))}
        <line className={classes.diagonal} x1={x(0)} y1={y(0)} x2={x(1)} y2={y(1)} />
        {bins.map((bin) => {
          const height = Math.max(2, (bin.n / most) * (counts - 16));
          return (
            <g key={bin.lower}>
              <rect
                className={classes.count}
                x={x(bin.lower) + 1}
                width={Math.max(1, (bin.upper - bin.lower) * size - 2)}
                y={counts - 4 - height}
                height={height}
              />
              <line
                className={classes.gap}
                x1={x(bin.confidence)}
                x2={x(bin.confidence)}
                y1={y(bin.confidence)}
                y2={y(bin.accuracy)}
              />
            </g>
          );
        })}
        <polyline className={classes.line} points={bins.map((b) => `${x(b.confidence)},${y(b.accuracy)}`).join(" ")} />
        {bins.map((bin) => (
          <circle key={bin.lower} className={classes.dot} cx={x(bin.confidence)} cy={y(bin.accuracy)} r={4}>
            <title>{`${count(bin.n)} items: confidence ${score(bin.confidence)}, right ${score(bin.accuracy)}`}</title>
          </circle>
        ))}
        <text className={classes.axis} x={x(0.5)} y={counts + size + bottom - 2} textAnchor="middle">
          confidence
        </text>
      </svg>
      <p className={classes.help}>
        Bars: items in each bin. Dots: how often the model was right there; on the diagonal its confidence can be
        believed{ece !== null && `, and it is off by ${score(ece)} on average`}.
      </p>
      <TableBehind>
        <table>
          <thead>
            <tr>
              <th scope="col">Confidence</th>
              <th scope="col">Items</th>
              <th scope="col">Mean confidence</th>
              <th scope="col">Right</th>
            </tr>
          </thead>
          <tbody>
            {bins.map((bin) => (
              <tr key={bin.lower}>
                <th scope="row">
                  {score(bin.lower)}–{bin.upper.toFixed(2)}
                </th>
                <td>{count(bin.n)}</td>
                <td>{score(bin.confidence)}</td>
                <td>{score(bin.accuracy)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableBehind>
    </>
  );
}
