import { Button, Skeleton } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { wordsOf } from "@/client/problem";
import { Icon } from "@/ui/icons";
import { Notice } from "@/ui/notice";

interface LoadedProps<T> {
  query: Pick<UseQueryResult<T>, "data" | "error" | "isFetching"> & { refetch: () => unknown };
  /** What is being read, for the error and for screen readers: "the runs". */
  what: string;
  /** How much room the content will take, so that nothing jumps when it comes. */
  height: number;
  children: (data: T) => ReactNode;
}

/** What a query gave: its content; before that a still of the same size; after a failure the reason and a retry. */
export function Loaded<T>({ query, what, height, children }: LoadedProps<T>) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && <Failure error={query.error} what={what} busy={query.isFetching} onRetry={query.refetch} />}
        {children(query.data)}
      </>
    );
  }
  if (query.error) {
    return (
      <div style={{ minHeight: height }}>
        <Failure error={query.error} what={what} busy={query.isFetching} onRetry={query.refetch} />
      </div>
    );
  }
  return (
    <div aria-busy="true">
      <span className="visually-hidden">Loading {what}</span>
      <Skeleton height={height} radius="md" />
    </div>
  );
}

interface FailureProps {
  error: unknown;
  what: string;
  busy: boolean;
  onRetry: () => unknown;
}

function Failure({ error, what, busy, onRetry }: FailureProps) {
  const { message, hint } = wordsOf(error);
  return (
    <Notice
      tone="danger"
      alert
      title={`Could not read ${what}: ${message}`}
      action={
        <Button variant="default" leftSection={<Icon name="retry" />} loading={busy} onClick={() => onRetry()}>
          Try again
        </Button>
      }
    >
      {hint}
    </Notice>
  );
}
