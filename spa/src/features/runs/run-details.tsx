import type { Run } from "@/client/schema";
import { CopyButton } from "@/ui/copy";
import { count, duration, moment } from "@/ui/format";
import { Panel } from "@/ui/panel";
import { ScrollBox } from "@/ui/scroll-box";
import { Facts } from "./facts";
import { curlOf } from "./request";
import classes from "./run-details.module.css";
import { skippedReasons } from "./words";

/** Everything needed to tell what exactly was run, and to run it again. */
export function RunDetails({ run }: { run: Run }) {
  const curl = curlOf(run, window.location.origin);
  const params = Object.entries(run.params).sort(([a], [b]) => a.localeCompare(b));
  const environment = Object.entries(run.environment)
    .filter(([name]) => name !== "device")
    .sort(([a], [b]) => a.localeCompare(b));
  return (
    <div className={classes.grid}>
      <Panel title="Parameters">
        {params.length === 0 ? (
          <p className={classes.none}>None given: the trainer's defaults.</p>
        ) : (
          <Facts facts={params.map(([name, value]) => [name, <code key={name}>{JSON.stringify(value)}</code>])} />
        )}
      </Panel>
      <Panel title="Environment">
        {environment.length === 0 && !run.host ? (
          <p className={classes.none}>Not known yet: the worker reports it when it starts.</p>
        ) : (
          <Facts facts={[["Machine", run.host], ["Device", run.device], ...environment]} />
        )}
      </Panel>
      <Panel title="Record">
        <Facts
          facts={[
            ["Bundle digest", run.bundle_digest && <code>{run.bundle_digest}</code>],
            ["Model version", run.model_version],
            ["Model files", run.artifact_uri && <code>{run.artifact_uri}</code>],
            ["Created", `${moment(run.created_at)} by ${run.created_by}`],
            ["Left the queue", run.started_at === null ? "" : moment(run.started_at)],
            ["In the cluster's queue", run.scheduler_wait_s > 0 ? duration(run.scheduler_wait_s) : ""],
            ["Ended", run.finished_at === null ? "" : moment(run.finished_at)],
            ["Attempt", String(run.attempt)],
          ]}
        />
      </Panel>
      {run.writeback && (
        <Panel title="Write-back">
          <Facts
            facts={[
              ["Schemes", run.writeback.schemas_enabled.join(", ") || "none"],
              ["Predictions read", count(run.writeback.n_read)],
              ["Published", count(run.writeback.n_written)],
              [
                "Held back",
                skippedReasons(run.writeback)
                  .map(({ reason, n }) => `${count(n)}, ${reason}`)
                  .join("; "),
              ],
            ]}
          />
        </Panel>
      )}
      <div className={classes.wide}>
        <Panel title="The request" aside={<CopyButton text={curl} what="the command" size="compact-sm" />}>
          <ScrollBox className={classes.curl} label="The request as a command">
            <pre>{curl}</pre>
          </ScrollBox>
        </Panel>
      </div>
    </div>
  );
}
