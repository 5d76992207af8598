import { queryOptions } from "@tanstack/react-query";
import { answer, api, apiRoot } from "@/client/client";

/** A run's model files. */
export function artifactsQuery(id: string, final: boolean) {
  return queryOptions({
    queryKey: ["artifacts", id, final],
    queryFn: ({ signal }) =>
      answer(api.GET("/admin/training/api/runs/{run_id}/artifacts", { params: { path: { run_id: id } }, signal })),
    select: (list) => list.artifacts,
    staleTime: final ? 60_000 : 0,
  });
}

/** Where a file is downloaded from. */
export function artifactLink(id: string, path: string): string {
  return `${apiRoot}/runs/${id}/artifact?${new URLSearchParams({ path })}`;
}
