import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import type { Run, RunList, Status } from "@/client/schema";
import { isFinal } from "@/ui/run-status";
import { runKeys } from "./queries";

/**
 * Puts a run, as the stream brought it, wherever the page shows it. It returns whether its state is news to the page:
 * then lists that it entered, left or must be sorted into are read again.
 */
export function patchRun(client: QueryClient, run: Run): { before: Run["status"] | undefined } {
  const before =
    client.getQueryData<Run>(runKeys.one(run.run_id))?.status ??
    inStatus(client.getQueryData<Status>(runKeys.status), run.run_id)?.status;

  if (client.getQueryData(runKeys.one(run.run_id)) !== undefined) {
    client.setQueryData<Run>(runKeys.one(run.run_id), run);
  }
  client.setQueryData<Status>(runKeys.status, (status) => status && withRun(status, run));

  let listed = false;
  client.setQueriesData<InfiniteData<RunList>>({ queryKey: runKeys.lists }, (list) => {
    if (!list) {
      return list;
    }
    const pages = list.pages.map((page) => {
      if (!page.runs.some((r) => r.run_id === run.run_id)) {
        return page;
      }
      listed = true;
      return { ...page, runs: page.runs.map((r) => (r.run_id === run.run_id ? run : r)) };
    });
    return { ...list, pages };
  });

  // An answer that is still under way was written before this message and would take the page back.
  const stale = { refetchType: "active" } as const;
  if (!listed || before !== run.status || client.isFetching({ queryKey: runKeys.lists }) > 0) {
    void client.invalidateQueries({ queryKey: runKeys.lists, ...stale });
  }
  if (before !== run.status) {
    void client.invalidateQueries({ queryKey: runKeys.status, ...stale });
  }
  if (client.isFetching({ queryKey: runKeys.one(run.run_id) }) > 0) {
    void client.invalidateQueries({ queryKey: runKeys.one(run.run_id), ...stale });
  }
  return { before };
}

function inStatus(status: Status | undefined, id: string): Run | undefined {
  return status && [...status.running, ...status.queued].find((r) => r.run_id === id);
}

/** The status with a run in the list that fits its state, at its old place where it was there already. */
export function withRun(status: Status, run: Run): Status {
  const put = (list: Run[], belongs: boolean) => {
    if (!belongs) {
      return list.filter((r) => r.run_id !== run.run_id);
    }
    return list.some((r) => r.run_id === run.run_id)
      ? list.map((r) => (r.run_id === run.run_id ? run : r))
      : [...list, run];
  };
  return {
    ...status,
    running: put(status.running, !isFinal(run.status) && run.status !== "queued"),
    queued: put(status.queued, run.status === "queued"),
  };
}
