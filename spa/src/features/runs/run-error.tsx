import { Button } from "@mantine/core";
import { useLocation } from "wouter";
import { wordsOf } from "@/client/problem";
import type { Run } from "@/client/schema";
import { CopyButton } from "@/ui/copy";
import { Icon } from "@/ui/icons";
import { Notice } from "@/ui/notice";
import { ScrollBox } from "@/ui/scroll-box";
import { useCreateRun } from "./queries";
import { requestOf } from "./request";
import classes from "./run-error.module.css";

interface RunErrorProps {
  run: Run;
  /** The last lines the worker left. */
  lastLines: readonly string[];
}

/** Why a run failed: the cause first, then what to do, then what the worker said last; the same request again, or a copy. */
export function RunError({ run, lastLines }: RunErrorProps) {
  const [, navigate] = useLocation();
  const retry = useCreateRun();
  const failed = retry.error === null ? null : wordsOf(retry.error);
  return (
    <section className={classes.card} aria-labelledby="run-error">
      <div className={classes.head}>
        <div className={classes.words}>
          <h2 id="run-error" className={classes.cause}>
            <Icon name="cross" />
            <span>{run.error}</span>
          </h2>
          {run.hint && <p className={classes.hint}>{run.hint}</p>}
        </div>
        <div className={classes.actions}>
          <CopyButton text={() => report(run, lastLines)} what="the error as text" />
          <Button
            leftSection={<Icon name="retry" />}
            loading={retry.isPending}
            onClick={() =>
              retry.mutate(requestOf(run), { onSuccess: (started) => navigate(`/runs/${started.run_id}`) })
            }
          >
            Retry
          </Button>
        </div>
      </div>
      {failed && (
        <Notice tone="danger" alert title={`The retry was refused: ${failed.message}`}>
          {failed.hint}
        </Notice>
      )}
      {lastLines.length > 0 && (
        <ScrollBox className={classes.log} label="Last lines of the log">
          <pre>{lastLines.join("\n")}</pre>
        </ScrollBox>
      )}
      {run.error_code && (
        <p className={classes.code}>
          Code <code>{run.error_code}</code>
        </p>
      )}
    </section>
  );
}

function report(run: Run, lastLines: readonly string[]): string {
  return [
    `Run ${run.run_id} on ${run.backend}${run.host ? ` (${run.host})` : ""}: ${run.trainer}, ${run.schema_names.join(", ")}`,
    `Error: ${run.error} [${run.error_code}]`,
    run.hint && `Hint: ${run.hint}`,
    lastLines.length > 0 && `Last lines:\n${lastLines.join("\n")}`,
  ]
    .filter(Boolean)
    .join("\n");
}
