import type { ReactNode } from "react";
import type { Run } from "@/client/schema";
import classes from "@/ui/run-status.module.css";

export type RunStatus = Run["status"];

// Each state has a shape of its own, so that colour is never alone.
const shapes: Record<RunStatus, ReactNode> = {
  queued: <circle cx="8" cy="8" r="5" strokeDasharray="2.6 2.6" />,
  building: (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="M8 8V3a5 5 0 0 1 5 5z" fill="currentColor" />
    </>
  ),
  running: <circle cx="8" cy="8" r="5" fill="currentColor" />,
  evaluating: (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="M8 3a5 5 0 0 1 0 10z" fill="currentColor" />
    </>
  ),
  success: <path d="M3 8.5l3.2 3.2L13 4.8" />,
  error: <path d="M4 4l8 8M12 4l-8 8" />,
  cancelled: (
    <>
      <circle cx="8" cy="8" r="5" />
      <path d="M4.6 11.4l6.8-6.8" />
    </>
  ),
};

/** A run's state: a shape and the word. A cancel that has not taken effect yet reads "cancelling". */
export function RunStatusMark({ status, cancelling = false }: { status: RunStatus; cancelling?: boolean }) {
  return (
    <span className={classes.mark} data-status={status}>
      <svg
        aria-hidden="true"
        width="14"
        height="14"
        viewBox="0 0 16 16"
        fill="none"
        stroke="currentColor"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
      >
        {shapes[status]}
      </svg>
      {cancelling ? "cancelling" : status}
    </span>
  );
}

/** Whether a run has ended. */
export function isFinal(status: RunStatus): boolean {
  return status === "success" || status === "error" || status === "cancelled";
}
