import { Link } from "wouter";
import type { Run } from "@/client/schema";
import { CopyButton } from "@/ui/copy";
import { Icon } from "@/ui/icons";
import { isFinal, RunStatusMark } from "@/ui/run-status";
import { TimeAgo } from "@/ui/time-ago";
import { CancelRun } from "./cancel-run";
import { heldOut, scoreSentence } from "./held-out";
import classes from "./run-header.module.css";
import { RunProgress } from "./run-progress";
import { Took } from "./took";
import { queueWords, triggerWords } from "./words";

/** The answers above the fold: what the run is, where it stands, whether it is any good. */
export function RunHeader({ run }: { run: Run }) {
  const held = heldOut(run);
  const going = !isFinal(run.status) && run.status !== "queued";
  return (
    <header className={classes.header}>
      <Link href="/" className={classes.back}>
        <Icon name="back" /> Training
      </Link>
      <div className={classes.line}>
        <div className={classes.name}>
          <h1 className={classes.id}>{run.run_id}</h1>
          <CopyButton text={run.run_id} what="the run's id" variant="subtle" size="compact-sm" />
        </div>
        <CancelRun run={run} />
      </div>
      <div className={classes.facts}>
        <RunStatusMark status={run.status} cancelling={run.cancel_requested && !isFinal(run.status)} />
        <Dot />
        <span>
          on {run.backend}
          {run.host && run.host !== run.backend && ` (${run.host})`}
        </span>
        <Dot />
        <span>{run.trainer}</span>
        <Dot />
        <span>{run.schema_names.join(", ")}</span>
        <Dot />
        <span>{triggerWords(run.trigger)}</span>
        <Dot />
        <TimeAgo at={run.created_at} />
        {run.duration !== null && (
          <>
            <Dot />
            <span>
              {going ? "running for " : "took "}
              <Took run={run} />
            </span>
          </>
        )}
        {run.attempt > 1 && (
          <>
            <Dot />
            <span>attempt {run.attempt}</span>
          </>
        )}
      </div>
      {held && run.status === "success" && (
        <p className={classes.sentence}>
          <ScoreWords sentence={scoreSentence(held, run.metrics.train_accuracy)} />
        </p>
      )}
      {run.status === "queued" && <p className={classes.waits}>{queueWords(run)}</p>}
      {going && <RunProgress run={run} />}
    </header>
  );
}

/** The sentence with its first number, the held-out score, standing out. */
function ScoreWords({ sentence }: { sentence: string }) {
  const space = sentence.indexOf(" ");
  return (
    <>
      <strong className={classes.score}>{sentence.slice(0, space)}</strong>
      {sentence.slice(space)}
    </>
  );
}

function Dot() {
  return (
    <span aria-hidden="true" className={classes.dot}>
      ·
    </span>
  );
}
