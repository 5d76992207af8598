import { queryOptions, useMutation } from "@tanstack/react-query";
import { answer, api } from "@/client/client";

/** The places where runs train. */
export const backendsQuery = queryOptions({
  queryKey: ["backends"],
  queryFn: ({ signal }) => answer(api.GET("/admin/training/api/backends", { signal })),
  select: (list) => list.backends,
  staleTime: 30_000,
});

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
