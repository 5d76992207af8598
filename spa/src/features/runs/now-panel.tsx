import { Button } from "@mantine/core";
import { Link } from "wouter";
import type { Run } from "@/client/schema";
import { sentence } from "@/ui/format";
import { Panel } from "@/ui/panel";
import { RunStatusMark } from "@/ui/run-status";
import { CancelRun } from "./cancel-run";
import classes from "./now-panel.module.css";
import { RunProgress } from "./run-progress";
import { queueWords, shortId } from "./words";

interface NowPanelProps {
  running: readonly Run[];
  queued: readonly Run[];
}

/** What is under way and what waits; absent when nothing is. */
export function NowPanel({ running, queued }: NowPanelProps) {
  if (running.length + queued.length === 0) {
    return null;
  }
  return (
    <Panel title="Now">
      <ul className={classes.list}>
        {running.map((run) => (
          <Row key={run.run_id} run={run} />
        ))}
        {queued.map((run) => (
          <Row key={run.run_id} run={run} />
        ))}
      </ul>
    </Panel>
  );
}

function Row({ run }: { run: Run }) {
  const waits = run.status === "queued";
  return (
    <li className={classes.row}>
      <div className={classes.head}>
        <div className={classes.words}>
          <RunStatusMark status={run.status} cancelling={run.cancel_requested} />
          <span>
            {waits ? queueWords(run) : `on ${run.host || run.backend}`}
            <span className={classes.what}>
              {" · "}
              {run.trainer} · {run.schema_names.join(", ")} · {shortId(run.run_id)}
            </span>
            {waits && run.hint && <span className={classes.hint}>{sentence(run.hint)}</span>}
          </span>
        </div>
        <div className={classes.actions}>
          <Button
            component={Link}
            href={`/runs/${run.run_id}`}
            variant="default"
            aria-label={`Open ${shortId(run.run_id)}`}
          >
            Open
          </Button>
          <CancelRun run={run} />
        </div>
      </div>
      {!waits && <RunProgress run={run} />}
    </li>
  );
}
