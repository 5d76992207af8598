import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Run } from "@/client/schema";
import { CopyButton } from "@/ui/copy";
import { duration, sentence } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { isFinal, RunStatusMark } from "@/ui/run-status";
import { TimeAgo } from "@/ui/time-ago";
import { CancelRun } from "./cancel-run";
import { heldOutOf, scoreSentence } from "./held-out";
import classes from "./run-header.module.css";
import { RunProgress } from "./run-progress";
import { Took } from "./took";
import { noScoreWords, queueWords, triggerWords } from "./words";

/** The answers above the fold: what the run is, where it stands, whether it is any good. */
export function RunHeader({ run }: { run: Run }) {
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
        {facts(run).map(([name, fact], i, all) => (
          <span key={name}>
            {fact}
            {i < all.length - 1 && <span aria-hidden="true"> ·</span>}
          </span>
        ))}
      </div>
      {run.status === "success" && <Scores run={run} />}
      {run.status === "queued" && (
        <p className={classes.waits}>
          {queueWords(run)}
          {run.hint && <span className={classes.hint}>{sentence(run.hint)}</span>}
        </p>
      )}
      {going && <RunProgress run={run} />}
    </header>
  );
}

/** What there is to say of any run, each with a name for React. */
function facts(run: Run): [name: string, fact: ReactNode][] {
  const ended = isFinal(run.status);
  const all: [string, ReactNode][] = [
    ["status", <RunStatusMark key="status" status={run.status} cancelling={run.cancel_requested && !ended} />],
    ["place", `on ${run.backend}${run.host && run.host !== run.backend ? ` (${run.host})` : ""}`],
    ["trainer", run.trainer],
    ["schemes", run.schema_names.join(", ")],
    ["trigger", triggerWords(run.trigger)],
    ["when", <TimeAgo key="when" at={run.created_at} />],
  ];
  if (run.duration !== null) {
    all.push([
      "took",
      <span key="took">
        {ended ? "took " : "for "}
        <Took run={run} />
      </span>,
    ]);
  }
  if (run.scheduler_wait_s >= 1) {
    all.push(["scheduler", `${duration(run.scheduler_wait_s)} of it in the cluster's queue`]);
  }
  if (run.attempt > 1) {
    all.push(["attempt", `attempt ${run.attempt}`]);
  }
  return all;
}

/** How good the run is, in a sentence for each scheme. */
function Scores({ run }: { run: Run }) {
  const many = run.schema_names.length > 1;
  return run.schema_names.map((schema, i) => {
    const held = heldOutOf(run, schema);
    const train = (run.metrics_by_schema[schema] ?? (i === 0 ? run.metrics : {})).train_accuracy;
    return (
      <p key={schema} className={classes.sentence}>
        {many && `${schema}: `}
        {held ? <ScoreWords sentence={scoreSentence(held, train)} /> : noScoreWords(run)}
      </p>
    );
  });
}

/** The sentence with its first number, the held-out score, standing out; what follows a dot does not break. */
function ScoreWords({ sentence }: { sentence: string }) {
  const [first = "", ...rest] = sentence.split(" · ");
  const space = first.indexOf(" ");
  return (
    <>
      <strong className={classes.score}>{first.slice(0, space)}</strong>
      {first.slice(space)}
      {rest.map((part) => (
        <span key={part}>
          {" · "}
          <span className={classes.whole}>{part}</span>
        </span>
      ))}
    </>
  );
}
