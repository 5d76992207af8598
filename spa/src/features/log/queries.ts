import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer, api } from "@/client/client";

/** The run's own log, or one of the files its worker wrote. */
export type LogSource = "log" | "stdout" | "stderr" | "agent";

export const chunkSize = 500;

function readLog(id: string, source: LogSource, from: number, limit: number, q: string, signal: AbortSignal) {
  return answer(
    api.GET("/admin/training/api/runs/{run_id}/log", {
      params: { path: { run_id: id }, query: { source, from, limit, q: q || undefined } },
      signal,
    }),
  );
}

/** The last lines and how many there are in all; while the run goes on it is asked again every second. */
export function tailQuery(id: string, source: LogSource, final: boolean) {
  return queryOptions({
    queryKey: ["log", id, source, "tail", final],
    queryFn: ({ signal }) => readLog(id, source, 0, chunkSize, "", signal),
    refetchInterval: final ? false : 1000,
    staleTime: final ? 60_000 : 0,
  });
}

/** A stretch of whole lines from the middle: they never change. */
export function chunkQuery(id: string, source: LogSource, chunk: number) {
  return queryOptions({
    queryKey: ["log", id, source, "chunk", chunk],
    queryFn: ({ signal }) => readLog(id, source, chunk * chunkSize + 1, chunkSize, "", signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The lines that hold a text, a page at a time. */
export function matchesQuery(id: string, source: LogSource, q: string) {
  return infiniteQueryOptions({
    queryKey: ["log", id, source, "matches", q],
    queryFn: ({ pageParam, signal }) => readLog(id, source, pageParam, chunkSize, q, signal),
    initialPageParam: 1,
    getNextPageParam: (page, pages) => {
      const last = page.lines.at(-1);
      const read = pages.reduce((n, p) => n + p.lines.length, 0);
      return last && read < page.total ? last.n + 1 : undefined;
    },
  });
}

/** The last lines of what the worker said before it failed: its stderr, else its log. */
export function lastWordsQuery(id: string, enabled: boolean) {
  return queryOptions({
    queryKey: ["log", id, "last words"],
    queryFn: async ({ signal }) => {
      const stderr = await readLog(id, "stderr", 0, 20, "", signal);
      const lines = stderr.lines.length > 0 ? stderr.lines : (await readLog(id, "log", 0, 20, "", signal)).lines;
      return lines.map((line) => line.text);
    },
    enabled,
    staleTime: 60_000,
  });
}

/** Reads a whole log as text, telling how far it is. */
export async function readWholeLog(
  id: string,
  source: LogSource,
  onProgress: (read: number, total: number) => void,
  signal: AbortSignal,
): Promise<Blob> {
  const parts: string[] = [];
  let from = 1;
  for (;;) {
    const { lines, total } = await readLog(id, source, from, 5000, "", signal);
    const last = lines.at(-1);
    if (!last) {
      return new Blob(parts, { type: "text/plain" });
    }
    parts.push(lines.map((line) => `${lineText(line.t, line.level)}${line.text}\n`).join(""));
    from = last.n + 1;
    onProgress(last.n, total);
  }
}

function lineText(t: number, level: string): string {
  const time = t > 0 ? `${new Date(t * 1000).toISOString()} ` : "";
  return level === "" ? time : `${time}${level} `;
}
