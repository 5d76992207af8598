import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api, apiRoot } from "@/client/client";
import type { PredictionFilter } from "./prediction-filter";

export const pageSize = 50;

/** One page of a run's predictions. */
export function predictionsQuery(runId: string, final: boolean, filter: PredictionFilter, cursor: string) {
  return queryOptions({
    queryKey: ["predictions", runId, final, filter, cursor],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/admin/training/api/runs/{run_id}/predictions", {
          params: {
            path: { run_id: runId },
            query: { ...filter, wrong: filter.wrong || undefined, cursor: cursor || undefined, limit: pageSize },
          },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    staleTime: final ? 60_000 : 0,
  });
}

/** Where the same predictions lie whole, as a file. */
export function predictionsFile(runId: string, filter: PredictionFilter, format: "ndjson" | "csv"): string {
  const query = new URLSearchParams({ format });
  for (const [name, value] of Object.entries(filter)) {
    if (value) {
      query.set(name, String(value));
    }
  }
  return `${apiRoot}/runs/${runId}/predictions?${query}`;
}

/** Takes a run's predictions back from annotators. */
export function useRetract(runId: string) {
  const refresh = useRefresh(runId);
  return useMutation({
    mutationFn: () =>
      answer(api.DELETE("/admin/training/api/runs/{run_id}/predictions", { params: { path: { run_id: runId } } })),
    onSuccess: refresh,
  });
}

/** Publishes a run's predictions again; with dryRun it only counts what would be published. */
export function useWriteback(runId: string) {
  const refresh = useRefresh(runId);
  return useMutation({
    mutationFn: ({ dryRun }: { dryRun: boolean }) =>
      answer(
        api.POST("/admin/training/api/runs/{run_id}/writeback", {
          params: { path: { run_id: runId } },
          body: { dry_run: dryRun },
        }),
      ),
    onSuccess: (_, { dryRun }) => (dryRun ? undefined : refresh()),
  });
}

function useRefresh(runId: string) {
  const client = useQueryClient();
  return () =>
    Promise.all([
      client.invalidateQueries({ queryKey: ["run", runId] }),
      client.invalidateQueries({ queryKey: ["runs"] }),
    ]);
}
