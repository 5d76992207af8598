import { Button } from "@mantine/core";
import { Link } from "wouter";
import { ApiError, wordsOf } from "@/client/problem";
import type { RunStarted } from "@/client/schema";
import { Notice } from "@/ui/notice";

/** What became of the last press of Train. */
export function TrainOutcome({ started, refused }: { started: RunStarted | null; refused: unknown }) {
  if (refused !== null) {
    const { message, hint } = wordsOf(refused);
    const fields = refused instanceof ApiError ? refused.problems.map((p) => p.message) : [];
    return (
      <Notice tone="danger" alert title={message}>
        {[...fields, hint].filter(Boolean).join(" · ")}
      </Notice>
    );
  }
  if (started === null) {
    return null;
  }
  return (
    <Notice
      tone="good"
      alert
      title={
        started.started
          ? "The run has started."
          : `The run waits in the queue${started.queue ? `, number ${started.queue.position}` : ""}.`
      }
      action={
        <Button component={Link} href={`/runs/${started.run_id}`} variant="default">
          Open the run
        </Button>
      }
    />
  );
}
