import { Button } from "@mantine/core";
import { useState } from "react";
import { wordsOf } from "@/client/problem";
import type { Run, Writeback } from "@/client/schema";
import { Confirm } from "@/ui/confirm";
import { count, counted } from "@/ui/format";
import classes from "./predictions-tab.module.css";
import { useRetract, useWriteback } from "./queries";

/** Whether annotators see the predictions, and the means to take them back or to show them. */
export function ShownToAnnotators({ run }: { run: Run }) {
  if (run.status !== "success") {
    return null;
  }
  const n = run.n_published;
  return (
    <div className={classes.shown}>
      <span>{n > 0 ? `annotators see ${count(n)} of them` : "annotators see none of them"}</span>
      {n > 0 ? <Retract run={run} n={n} /> : <Show run={run} />}
    </div>
  );
}

function Retract({ run, n }: { run: Run; n: number }) {
  const [asking, setAsking] = useState(false);
  const retract = useRetract(run.run_id);
  return (
    <>
      <Button variant="default" onClick={() => setAsking(true)}>
        Retract
      </Button>
      <Confirm
        opened={asking}
        onClose={() => setAsking(false)}
        title={`Retract ${counted(n, "prediction")} from annotators?`}
        confirm="Retract"
        keep="Keep them"
        danger
        busy={retract.isPending}
        error={retract.error}
        onConfirm={() => retract.mutate(undefined, { onSuccess: () => setAsking(false) })}
      >
        They no longer appear as pre-annotations. The run keeps them, and they can be shown again.
      </Confirm>
    </>
  );
}

function Show({ run }: { run: Run }) {
  const [plan, setPlan] = useState<Writeback | null>(null);
  const preview = useWriteback(run.run_id);
  const show = useWriteback(run.run_id);
  return (
    <>
      <Button
        variant="default"
        loading={preview.isPending}
        onClick={() => preview.mutate({ dryRun: true }, { onSuccess: setPlan })}
      >
        Show to annotators
      </Button>
      {preview.error && <span role="alert">{wordsOf(preview.error).message}</span>}
      <Confirm
        opened={plan !== null}
        onClose={() => setPlan(null)}
        title={plan ? question(plan) : ""}
        confirm="Show them"
        keep="Not now"
        busy={show.isPending}
        error={show.error}
        onConfirm={() => show.mutate({ dryRun: false }, { onSuccess: () => setPlan(null) })}
      >
        {plan && plan.n_read > plan.n_written && `${count(plan.n_read - plan.n_written)} are held back.`}
      </Confirm>
    </>
  );
}

function question(plan: Writeback): string {
  if (plan.schemas_enabled.length === 0) {
    return "Nothing would be shown: model_training.writeback.schemas names no scheme.";
  }
  return `Show ${counted(plan.n_written, "prediction")} to annotators as pre-annotations?`;
}
