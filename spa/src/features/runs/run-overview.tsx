import { Link } from "wouter";
import type { Run } from "@/client/schema";
import { count, counted, sentence } from "@/ui/format";
import { Notice } from "@/ui/notice";
import { Panel } from "@/ui/panel";
import { runLink } from "@/ui/run-link";
import { isFinal } from "@/ui/run-status";
import { Facts } from "./facts";
import { ResultTable } from "./result-table";
import classes from "./run-overview.module.css";
import { labelsOf, publishedSentence, skippedReasons } from "./words";

/** What came of a run and what to do next. */
export function RunOverview({ run }: { run: Run }) {
  return (
    <div className={classes.grid}>
      {run.warnings.map((warning) => (
        <div key={warning} className={classes.wide}>
          <Notice tone="warn" title={sentence(warning)} />
        </div>
      ))}
      <Panel title="Result">
        <Result run={run} />
      </Panel>
      <Panel title="Data">
        {labelsOf(run) === 0 ? (
          <p className={classes.none}>The bundle is not written yet: the split of the items is known after it.</p>
        ) : (
          <Facts
            facts={[
              ["Trained on", counted(run.n_train, "item")],
              ["Validation", counted(run.n_val, "item")],
              ["Test", counted(run.n_test, "item")],
              ["Unlabelled", run.n_unlabeled > 0 ? `${counted(run.n_unlabeled, "item")} predicted` : "not predicted"],
              ["Split seed", String(run.split_seed)],
            ]}
          />
        )}
      </Panel>
      <Panel title="Predictions">
        <Predictions run={run} />
      </Panel>
    </div>
  );
}

function Result({ run }: { run: Run }) {
  if (run.status !== "success") {
    return <p className={classes.none}>{noResult(run)}</p>;
  }
  return (
    <>
      <ResultTable run={run} />
      <Link href={runLink(run.run_id, { tab: "scores" })} className={classes.next}>
        See which labels are confused
      </Link>
    </>
  );
}

function noResult(run: Run): string {
  if (run.status === "error") {
    return "The run failed before it could be scored.";
  }
  if (run.status === "cancelled") {
    return run.message || "The run was cancelled before it could be scored.";
  }
  return isFinal(run.status) ? "" : "Scores appear here when the run has ended.";
}

function noPredictions(run: Run): string {
  if (run.status === "success") {
    return "None of this run's predictions is published.";
  }
  return isFinal(run.status) ? "The run left none." : "They appear here when the run has ended.";
}

function Predictions({ run }: { run: Run }) {
  if (run.writeback === null) {
    return (
      <p className={classes.none}>
        {noPredictions(run)}
        {run.status === "success" && (
          <>
            {" "}
            <Link href={runLink(run.run_id, { tab: "predictions" })} className={classes.next}>
              Look at them
            </Link>
          </>
        )}
      </p>
    );
  }
  const skipped = skippedReasons(run.writeback);
  return (
    <>
      <p className={classes.lead}>{publishedSentence(run.writeback, run.n_published)}.</p>
      <p className={classes.none}>This server keeps them. It does not write them into the annotation tool yet.</p>
      {skipped.length > 0 && (
        <ul className={classes.skipped}>
          {skipped.map(({ reason, n }) => (
            <li key={reason}>
              <span>{count(n)}</span> because {reason}
            </li>
          ))}
        </ul>
      )}
      {run.writeback.warnings.map((warning) => (
        <Notice key={warning} tone="warn" title={warning} />
      ))}
      <Link href={runLink(run.run_id, { tab: "predictions", wrong: "true" })} className={classes.next}>
        Look at the ones it got wrong
      </Link>
    </>
  );
}
