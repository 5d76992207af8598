import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "@/client/client";

/** The places where runs train. */
export const backendsQuery = queryOptions({
  queryKey: ["backends"],
  queryFn: ({ signal }) => answer(api.GET("/admin/training/api/backends", { signal })),
  select: (list) => list.backends,
  staleTime: 30_000,
  // Agents come and go by themselves.
  refetchInterval: (query) => (query.state.data?.backends.some((b) => b.agent) ? 15_000 : false),
});

/** Issues a token for the agents of a backend, in place of the one before. */
export function useRegister() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (name: string) =>
      answer(api.POST("/admin/training/api/backends/{name}/token", { params: { path: { name } } })),
    onSuccess: () => cache.invalidateQueries({ queryKey: backendsQuery.queryKey }),
    gcTime: 0, // a secret is not kept
  });
}

/** Asks whether a run of the trainer could start on the backend. */
export function useCheck() {
  return useMutation({
    mutationFn: ({ backend, trainer }: { backend: string; trainer: string }) =>
      answer(
        api.POST("/admin/training/api/backends/{name}/check", {
          params: { path: { name: backend } },
          body: trainer ? { trainer } : {},
        }),
      ),
  });
}
