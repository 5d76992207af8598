import { Button } from "@mantine/core";
import { useState } from "react";
import type { Run } from "@/client/schema";
import { Confirm } from "@/ui/confirm";
import { isFinal } from "@/ui/run-status";
import { useCancelRun } from "./queries";
import { shortId } from "./words";

/** Cancel run, with the consequence in the question. Absent where a cancel would be refused. */
export function CancelRun({ run }: { run: Run }) {
  const [asking, setAsking] = useState(false);
  const cancel = useCancelRun(run.run_id);
  if (isFinal(run.status) || run.status === "evaluating") {
    return null;
  }
  const waits = run.status === "queued";
  return (
    <>
      <Button
        variant="default"
        disabled={run.cancel_requested}
        onClick={() => setAsking(true)}
        aria-label={`Cancel run ${shortId(run.run_id)}`}
      >
        {run.cancel_requested ? "Cancelling…" : "Cancel run"}
      </Button>
      <Confirm
        opened={asking && !run.cancel_requested}
        onClose={() => setAsking(false)}
        title={
          waits
            ? `Take run ${shortId(run.run_id)} out of the queue?`
            : `Cancel run ${shortId(run.run_id)} and lose what it has trained so far?`
        }
        confirm="Cancel run"
        keep={waits ? "Keep it waiting" : "Let it train"}
        danger
        busy={cancel.isPending}
        error={cancel.error}
        onConfirm={() => cancel.mutate(undefined, { onSuccess: () => setAsking(false) })}
      />
    </>
  );
}
