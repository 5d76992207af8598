import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { MetricsReport, SchemaScores, SplitScores } from "@/client/schema";
import { Empty } from "@/ui/empty";
import { count, score } from "@/ui/format";
import { Loaded } from "@/ui/loaded";
import { Notice } from "@/ui/notice";
import { Panel } from "@/ui/panel";
import { ConfusionMatrix } from "./confusion-matrix";
import { LabelTable } from "./label-table";
import { metricsQuery } from "./queries";
import { Reliability } from "./reliability";
import classes from "./scores-tab.module.css";

interface ScoresTabProps {
  runId: string;
  final: boolean;
}

/** How good the model is on items it never saw, label by label. */
export function ScoresTab({ runId, final }: ScoresTabProps) {
  const query = useQuery(metricsQuery(runId, final));
  return (
    <Loaded query={query} what="the scores" height={480}>
      {(report) => <Scores runId={runId} report={report} final={final} />}
    </Loaded>
  );
}

type Split = "test" | "val";

const splitNames: Record<Split, string> = { test: "Test items", val: "Validation items" };

function Scores({ runId, report, final }: { runId: string; report: MetricsReport; final: boolean }) {
  const [schemaName, setSchemaName] = useState("");
  const [wanted, setWanted] = useState<Split>("test");
  const scores = report.schemas.find((s) => s.schema === schemaName) ?? report.schemas[0];
  if (!scores) {
    return (
      <Empty title="There are no scores">
        {final
          ? "The run ended before its predictions could be scored."
          : "They are computed from the predictions on held-out items, when the run has trained."}
      </Empty>
    );
  }
  const splits = (["test", "val"] as const).filter((s) => scores[s] !== null);
  const split = splits.includes(wanted) ? wanted : splits[0];
  const shown = split ? scores[split] : null;
  return (
    <div className={classes.scores}>
      <div className={classes.switches}>
        {report.schemas.length > 1 && (
          <SegmentedControl
            aria-label="Scheme"
            data={report.schemas.map((s) => s.schema)}
            value={scores.schema}
            onChange={setSchemaName}
          />
        )}
        {splits.length > 1 && split && (
          <SegmentedControl
            aria-label="Split"
            data={splits.map((s) => ({ value: s, label: splitNames[s] }))}
            value={split}
            onChange={(value) => setWanted(value === "val" ? "val" : "test")}
          />
        )}
      </div>
      {[...scores.warnings, ...(shown?.warnings ?? [])].map((warning) => (
        <Notice key={warning} tone="warn" title={warning} />
      ))}
      {shown && split ? (
        <>
          <Figures scores={shown} split={split} kind={scores.kind} />
          <div className={classes.panels}>
            <Panel title="By label" flush>
              <LabelTable labels={shown.labels} />
            </Panel>
            {shown.confusion && (
              <Panel title="Confusion">
                <ConfusionMatrix confusion={shown.confusion} runId={runId} schema={scores.schema} split={split} />
              </Panel>
            )}
            <Panel title="Reliability">
              <Reliability bins={shown.reliability} ece={shown.ece} />
            </Panel>
          </div>
        </>
      ) : (
        <Empty title="No held-out score">There were no held-out items with labels of this scheme.</Empty>
      )}
      <TrainingFigures train={scores.train} />
    </div>
  );
}

function Figures({ scores, split, kind }: { scores: SplitScores; split: Split; kind: string }) {
  const figures: [name: string, value: number | null][] = [
    [kind === "multilabel" ? "Subset accuracy" : "Accuracy", scores.accuracy],
    ["Macro-F1", scores.macro_f1],
    ["Micro-F1", scores.micro_f1],
    ["Calibration error", scores.ece],
    ["Mean absolute error", scores.mae],
    ["Quadratic kappa", scores.quadratic_kappa],
  ];
  return (
    <div>
      <dl className={classes.figures}>
        {figures
          .filter((f): f is [string, number] => f[1] !== null)
          .map(([name, value]) => (
            <div key={name} className={classes.figure}>
              <dt>{name}</dt>
              <dd>{score(value)}</dd>
            </div>
          ))}
      </dl>
      <p className={classes.on}>
        on {count(scores.n)} {splitNames[split].toLowerCase()} that the model never saw
      </p>
    </div>
  );
}

/** Small, and called what they are: figures on rows the model has learnt by heart. */
function TrainingFigures({ train }: { train: SchemaScores["train"] }) {
  const figures = Object.entries(train).filter((f): f is [string, number] => f[1] !== null);
  if (figures.length === 0) {
    return null;
  }
  return (
    <p className={classes.train}>
      On the training rows themselves, which says little about new items:{" "}
      {figures
        .map(([name, value]) => `${name.replaceAll("_", " ")} ${Number.isInteger(value) ? count(value) : score(value)}`)
        .join(", ")}
    </p>
  );
}
