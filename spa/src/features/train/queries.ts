import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "@/client/client";

/** The trainers and whether they are available. */
export const trainersQuery = queryOptions({
  queryKey: ["trainers"],
  queryFn: ({ signal }) => answer(api.GET("/admin/training/api/trainers", { signal })),
  select: (list) => list.trainers,
  staleTime: 60_000,
});

/** The schemes with the labels collected; annotators go on labelling, so it is asked again now and then. */
export const schemesQuery = queryOptions({
  queryKey: ["schemas"],
  queryFn: ({ signal }) => answer(api.GET("/admin/training/api/schemas", { signal })),
  select: (list) => list.schemas,
  refetchInterval: 30_000,
});
