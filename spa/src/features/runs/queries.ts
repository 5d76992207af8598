import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "@/client/client";
import type { RunRequest } from "@/client/schema";
import type { RunStatus } from "@/ui/run-status";

/** What the runs table is narrowed to; it lives in the page's address. */
export interface RunFilter {
  status?: RunStatus;
  trainer?: string;
  backend?: string;
  q?: string;
  sort?: RunSort;
}

export type RunSort = "-created_at" | "created_at" | "-score" | "score" | "-duration" | "duration";

export const runKeys = {
  status: ["status"],
  lists: ["runs"],
  list: (filter: RunFilter) => ["runs", filter],
  one: (id: string) => ["run", id],
};

/** What the server is doing; its 401 is how the page learns that nobody is signed in. */
export const statusQuery = queryOptions({
  queryKey: runKeys.status,
  queryFn: ({ signal }) => answer(api.GET("/admin/training/api/status", { signal })),
  retry: false,
});

/** The runs, a page at a time. */
export function runsQuery(filter: RunFilter) {
  return infiniteQueryOptions({
    queryKey: runKeys.list(filter),
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/admin/training/api/runs", {
          params: { query: { ...filter, cursor: pageParam || undefined, limit: 50 } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
    placeholderData: (previous) => previous,
  });
}

/** One run. */
export function runQuery(id: string) {
  return queryOptions({
    queryKey: runKeys.one(id),
    queryFn: ({ signal }) =>
      answer(api.GET("/admin/training/api/runs/{run_id}", { params: { path: { run_id: id } }, signal })),
  });
}

/** Starts a run in the page's name, or queues it. */
export function useCreateRun() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: RunRequest) =>
      answer(api.POST("/admin/training/api/runs", { params: { header: { "X-Potato-Client": "page" } }, body })),
    onSuccess: () => refreshRuns(client),
  });
}

/** Asks for a run's end. */
export function useCancelRun(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      answer(api.POST("/admin/training/api/runs/{run_id}/cancel", { params: { path: { run_id: id } } })),
    onSettled: () => Promise.all([refreshRuns(client), client.invalidateQueries({ queryKey: runKeys.one(id) })]),
  });
}

function refreshRuns(client: ReturnType<typeof useQueryClient>) {
  return Promise.all([
    client.invalidateQueries({ queryKey: runKeys.status }),
    client.invalidateQueries({ queryKey: runKeys.lists }),
  ]);
}
