import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "@/client/client";

/** Signs this browser in; everything is then read anew. */
export function useSignIn() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (key: string) => answer(api.POST("/admin/training/api/session", { body: { api_key: key } })),
    onSuccess: () => client.resetQueries(),
  });
}

/** Signs it out and forgets what was read. */
export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => answer(api.DELETE("/admin/training/api/session")),
    onSettled: () => client.resetQueries(),
  });
}
