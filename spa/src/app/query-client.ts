import { QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "@/client/problem";
import { runKeys } from "@/features/runs/queries";

/** A client that tries again what may pass, and learns from any 401 that the session is over. */
export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        if (error instanceof ApiError && error.status === 401 && query.queryKey[0] !== runKeys.status[0]) {
          void client.invalidateQueries({ queryKey: runKeys.status });
        }
      },
    }),
    defaultOptions: {
      queries: {
        retry: (failures, error) => failures < 2 && (!(error instanceof ApiError) || isPassing(error.status)),
      },
    },
  });
  return client;
}

function isPassing(status: number): boolean {
  return status === 0 || status === 429 || status >= 502;
}
