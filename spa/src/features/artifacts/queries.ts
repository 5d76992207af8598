import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api, apiRoot } from "@/client/client";

/** A run's model files. */
export function artifactsQuery(id: string, final: boolean, step: string) {
  return queryOptions({
    queryKey: ["artifacts", id, final, final && step === ""], // anew when a copy has ended
    queryFn: ({ signal }) =>
      answer(api.GET("/admin/training/api/runs/{run_id}/artifacts", { params: { path: { run_id: id } }, signal })),
    select: (list) => list.artifacts,
    staleTime: final ? 60_000 : 0,
  });
}

/** Has the files copied here that are on the training machine alone; the run's step says how far the copy is. */
export function useCopyAgain(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      answer(api.POST("/admin/training/api/runs/{run_id}/artifacts", { params: { path: { run_id: id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: ["run", id] }),
  });
}

/** Where a file is downloaded from. */
export function artifactLink(id: string, path: string): string {
  return `${apiRoot}/runs/${id}/artifact?${new URLSearchParams({ path })}`;
}
