import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import type { Curve } from "@/client/schema";
import { Empty } from "@/ui/empty";
import { score } from "@/ui/format";
import { Loaded } from "@/ui/loaded";
import { Panel } from "@/ui/panel";
import { TableBehind } from "@/ui/table-behind";
import { type ChartData, chartsOf } from "./charts";
import classes from "./curves-tab.module.css";
import { metricsQuery } from "./queries";

const CurveChart = lazy(() => import("./curve-chart"));

interface CurvesTabProps {
  runId: string;
  final: boolean;
  /** The curves as the events have drawn them so far, while the run is under way. */
  live: readonly Curve[];
}

/** What the trainer reported while it trained: one chart a figure. */
export function CurvesTab({ runId, final, live }: CurvesTabProps) {
  const query = useQuery({ ...metricsQuery(runId, final), enabled: final });
  if (!final) {
    return <Charts curves={live} final={false} />;
  }
  return (
    <Loaded query={query} what="the curves" height={320}>
      {(report) => <Charts curves={report.curves} final />}
    </Loaded>
  );
}

function Charts({ curves, final }: { curves: readonly Curve[]; final: boolean }) {
  const charts = chartsOf(curves);
  if (charts.length === 0) {
    return (
      <Empty title="There are no curves">
        {final
          ? "This trainer fits in one go and reports no figures on the way. Its scores are under Scores."
          : "They appear as soon as the trainer reports its first figure."}
      </Empty>
    );
  }
  return (
    <div className={classes.grid}>
      {charts.map((chart) => (
        <Panel key={chart.name} title={chart.name} aside={<Last chart={chart} />}>
          <Suspense fallback={<div className={classes.room} />}>
            <CurveChart chart={chart} />
          </Suspense>
          <TableBehind of={chart.name}>
            <ChartTable chart={chart} />
          </TableBehind>
        </Panel>
      ))}
    </div>
  );
}

function Last({ chart }: { chart: ChartData }) {
  return (
    <span className={classes.last}>
      {chart.series.map((s) => `${s.label} ${figure(s.values.findLast((v) => v !== null) ?? null)}`).join(" · ")}
    </span>
  );
}

function ChartTable({ chart }: { chart: ChartData }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Step</th>
          {chart.series.map((s) => (
            <th key={s.label} scope="col">
              {s.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {chart.steps.map((step, i) => (
          <tr key={step}>
            <th scope="row">{step}</th>
            {chart.series.map((s) => (
              <td key={s.label}>{figure(s.values[i] ?? null)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function figure(value: number | null): string {
  return value === null ? "" : Math.abs(value) < 0.01 && value !== 0 ? value.toExponential(1) : score(value);
}
