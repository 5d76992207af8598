import type { RunStatus } from "@/ui/run-status";
import type { RunFilter, RunSort } from "./queries";

export const statuses: readonly RunStatus[] = [
  "queued",
  "building",
  "running",
  "evaluating",
  "success",
  "error",
  "cancelled",
];

const sorts: readonly RunSort[] = ["-created_at", "created_at", "-score", "score", "-duration", "duration"];

export function isStatus(text: string | undefined | null): text is RunStatus {
  return statuses.some((s) => s === text);
}

/** Reads a filter from an address; what makes no sense there is left out. */
export function readFilter(params: URLSearchParams): RunFilter {
  const status = params.get("status");
  const sort = sorts.find((s) => s === params.get("sort"));
  const filter: RunFilter = {};
  if (isStatus(status)) {
    filter.status = status;
  }
  for (const key of ["trainer", "backend", "q"] as const) {
    const value = params.get(key);
    if (value) {
      filter[key] = value;
    }
  }
  if (sort) {
    filter.sort = sort;
  }
  return filter;
}

/** Writes it so that the address can be shared. */
export function writeFilter(filter: RunFilter): URLSearchParams {
  const params = new URLSearchParams();
  for (const key of ["status", "trainer", "backend", "q", "sort"] as const) {
    const value = filter[key];
    if (value) {
      params.set(key, value);
    }
  }
  return params;
}
