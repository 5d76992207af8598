import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "@/client/client";

/** A run's scores and curves; they are read anew when the run has ended. */
export function metricsQuery(id: string, final: boolean) {
  return queryOptions({
    queryKey: ["metrics", id, final],
    queryFn: ({ signal }) =>
      answer(api.GET("/admin/training/api/runs/{run_id}/metrics", { params: { path: { run_id: id } }, signal })),
    staleTime: final ? 60_000 : 0,
  });
}
