import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Run } from "@/client/schema";
import { count } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { RunStatusMark } from "@/ui/run-status";
import { TimeAgo } from "@/ui/time-ago";
import { heldOut } from "./held-out";
import type { RunSort } from "./queries";
import classes from "./run-table.module.css";
import { ScoreBar } from "./score-bar";
import { Took } from "./took";
import { labelsOf, noScoreWords, placeWords, shortId } from "./words";

interface RunTableProps {
  runs: readonly Run[];
  best: ReadonlySet<string>;
  sort: RunSort;
  onSort: (sort: RunSort) => void;
}

/** The runs as a table, for wide windows. */
export function RunTable({ runs, best, sort, onSort }: RunTableProps) {
  return (
    <div className={classes.scroll}>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Status</th>
            <th scope="col">Trainer</th>
            <th scope="col">Schemes</th>
            <th scope="col">Ran on</th>
            <SortHead by="score" sort={sort} onSort={onSort}>
              Held-out score
            </SortHead>
            <th scope="col" className={classes.number}>
              Labels
            </th>
            <SortHead by="created_at" sort={sort} onSort={onSort}>
              Started
            </SortHead>
            <SortHead by="duration" sort={sort} onSort={onSort} number>
              Took
            </SortHead>
            <th scope="col">Predictions published</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.run_id}>
              <th scope="row">
                <Link href={`/runs/${run.run_id}`} className={classes.id} title={run.run_id}>
                  {shortId(run.run_id)}
                </Link>
              </th>
              <td>
                <RunStatusMark status={run.status} cancelling={run.cancel_requested && run.status !== "cancelled"} />
              </td>
              <td>{run.trainer}</td>
              <td className={classes.schemes} title={run.schema_names.join(", ")}>
                {run.schema_names.join(", ")}
              </td>
              <td>{run.backend}</td>
              <td>
                <Outcome run={run} best={best.has(run.run_id)} />
              </td>
              <td className={classes.number}>{labelsOf(run) > 0 ? count(labelsOf(run)) : "–"}</td>
              <td className={classes.nowrap}>
                <TimeAgo at={run.created_at} />
              </td>
              <td className={classes.number}>
                <Took run={run} />
              </td>
              <td>
                <Published run={run} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What came of a run: its held-out score, why it failed, or what it is doing. */
export function Outcome({ run, best }: { run: Run; best: boolean }) {
  const held = heldOut(run);
  if (run.status === "error") {
    return (
      <span className={classes.error} title={run.error}>
        {run.error}
      </span>
    );
  }
  if (held) {
    return <ScoreBar held={held} best={best} />;
  }
  return <span className={classes.quiet}>{quietWords(run)}</span>;
}

function quietWords(run: Run): string {
  if (run.status === "queued") {
    return placeWords(run);
  }
  return run.status === "success" ? noScoreWords(run) : run.step || "–";
}

/** Whether the run's predictions are published, and how many. */
export function Published({ run }: { run: Run }) {
  if (run.n_published === 0) {
    return <span className={classes.quiet}>–</span>;
  }
  return (
    <span className={classes.shown}>
      <Icon name="check" />
      {count(run.n_published)}
    </span>
  );
}

interface SortHeadProps {
  by: "created_at" | "score" | "duration";
  sort: RunSort;
  onSort: (sort: RunSort) => void;
  number?: boolean;
  children: ReactNode;
}

function SortHead({ by, sort, onSort, number = false, children }: SortHeadProps) {
  const direction = sort === by ? "ascending" : sort === `-${by}` ? "descending" : undefined;
  return (
    <th scope="col" aria-sort={direction ?? "none"} className={number ? classes.number : undefined}>
      <button
        type="button"
        className={classes.sort}
        data-active={direction !== undefined}
        onClick={() => onSort(direction === "descending" ? by : `-${by}`)}
      >
        {children}
        <Icon name={direction === "ascending" ? "up" : direction === "descending" ? "down" : "sort"} size={12} />
      </button>
    </th>
  );
}
