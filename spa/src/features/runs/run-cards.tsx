import { Link } from "wouter";
import type { Run } from "@/client/schema";
import { counted } from "@/ui/format";
import { isFinal, RunStatusMark } from "@/ui/run-status";
import { TimeAgo } from "@/ui/time-ago";
import classes from "./run-cards.module.css";
import { Outcome, Published } from "./run-table";
import { Took } from "./took";
import { labelsOf, shortId } from "./words";

interface RunCardsProps {
  runs: readonly Run[];
  best: ReadonlySet<string>;
}

/** The same runs for narrow windows, where a table of ten columns has no room. */
export function RunCards({ runs, best }: RunCardsProps) {
  return (
    <ul className={classes.cards}>
      {runs.map((run) => (
        <li key={run.run_id} className={classes.card}>
          <div className={classes.top}>
            <Link href={`/runs/${run.run_id}`} className={classes.id}>
              {shortId(run.run_id)}
            </Link>
            <RunStatusMark status={run.status} cancelling={run.cancel_requested && run.status !== "cancelled"} />
          </div>
          <div className={classes.outcome}>
            <Outcome run={run} best={best.has(run.run_id)} />
          </div>
          <div className={classes.facts}>
            {run.trainer} · {run.schema_names.join(", ")} · on {run.backend}
          </div>
          <div className={classes.facts}>
            <TimeAgo at={run.created_at} />
            {run.duration !== null && (
              <>
                {isFinal(run.status) ? " · took " : " · for "}
                <Took run={run} />
              </>
            )}
            {labelsOf(run) > 0 && ` · ${counted(labelsOf(run), "label")}`}
          </div>
          {run.n_published > 0 && (
            <div className={classes.shown}>
              <Published run={run} /> predictions published
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}
