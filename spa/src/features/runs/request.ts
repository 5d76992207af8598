import type { Run, RunRequest } from "@/client/schema";

/** The request that made the run, to be sent again. */
export function requestOf(run: Run): RunRequest {
  return {
    trainer: run.trainer,
    schemas: run.schema_names,
    backend: run.backend,
    ...(Object.keys(run.params).length > 0 && { params: run.params }),
  };
}

/** The same as a command line; the key is named, not shown. */
export function curlOf(run: Run, origin: string): string {
  const body = JSON.stringify(requestOf(run)).replaceAll("'", "'\\''");
  return [
    `curl -X POST ${origin}/admin/training/api/runs`,
    `-H "X-API-Key: $POTATO_ADMIN_KEY"`,
    `-H 'Content-Type: application/json'`,
    `-d '${body}'`,
  ].join(" \\\n  ");
}
