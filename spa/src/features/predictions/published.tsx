import { Button } from "@mantine/core";
import { useState } from "react";
import { wordsOf } from "@/client/problem";
import type { Run, Writeback } from "@/client/schema";
import { Confirm } from "@/ui/confirm";
import { count, counted } from "@/ui/format";
import classes from "./predictions-tab.module.css";
import { useRetract, useWriteback } from "./queries";

/** Whether the predictions are published, and the means to take them back or to publish them. */
export function Published({ run }: { run: Run }) {
  if (run.status !== "success") {
    return null;
  }
  const n = run.n_published;
  return (
    <div className={classes.shown}>
      <span>{n > 0 ? `${count(n)} of them are published` : "none of them is published"}</span>
      {n > 0 ? <Retract run={run} n={n} /> : <Publish run={run} />}
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
        They are no longer published as pre-annotations. The run keeps them, and they can be published again.
      </Confirm>
    </>
  );
}

function Publish({ run }: { run: Run }) {
  const [plan, setPlan] = useState<Writeback | null>(null);
  const preview = useWriteback(run.run_id);
  const publish = useWriteback(run.run_id);
  return (
    <>
      <Button
        variant="default"
        loading={preview.isPending}
        onClick={() => preview.mutate({ dryRun: true }, { onSuccess: setPlan })}
      >
        Publish
      </Button>
      {preview.error && <span role="alert">{wordsOf(preview.error).message}</span>}
      <Confirm
        opened={plan !== null}
        onClose={() => setPlan(null)}
        title={plan ? question(plan) : ""}
        confirm="Publish them"
        keep="Not now"
        busy={publish.isPending}
        error={publish.error}
        onConfirm={() => publish.mutate({ dryRun: false }, { onSuccess: () => setPlan(null) })}
      >
        {plan && plan.n_read > plan.n_written && `${count(plan.n_read - plan.n_written)} are held back.`}
      </Confirm>
    </>
  );
}

function question(plan: Writeback): string {
  if (plan.schemas_enabled.length === 0) {
    return "Nothing would be published: model_training.writeback.schemas names no scheme.";
  }
  return `Publish ${counted(plan.n_written, "prediction")} as pre-annotations?`;
}
