import type { ErrorDocument, Problem } from "@/client/schema";

/** A request that failed, in the words of the server's problem document. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly problems: Problem[];

  constructor(document: Pick<ErrorDocument, "status" | "detail" | "code" | "hint" | "errors">) {
    super(document.detail);
    this.name = "ApiError";
    this.status = document.status;
    this.code = document.code;
    this.hint = document.hint ?? "";
    this.problems = document.errors ?? [];
  }

  /** What is wrong with one field of the request, e.g. "body.params.C"; empty when nothing is. */
  problemAt(path: string): string {
    return this.problems.find((p) => p.path === path || p.path === `body.${path}`)?.message ?? "";
  }
}

/** Turns whatever a failed call left behind into an error that can be shown. */
export function problemOf(body: unknown, response: Response): ApiError {
  if (isErrorDocument(body)) {
    return new ApiError(body);
  }
  return new ApiError({
    status: response.status,
    code: "unexpected_answer",
    detail: `The server answered ${response.status} ${response.statusText}`.trim(),
    hint: "A proxy in between may have answered for it.",
  });
}

/** The error of a call that got no answer at all. */
export function noAnswer(): ApiError {
  return new ApiError({
    status: 0,
    code: "no_answer",
    detail: "The server does not answer",
    hint: "Is `potato start` running, and can this browser reach it?",
  });
}

/** The text and the hint of any error, for people. */
export function wordsOf(error: unknown): { message: string; hint: string } {
  if (error instanceof ApiError) {
    return { message: error.message, hint: error.hint };
  }
  return { message: error instanceof Error ? error.message : String(error), hint: "" };
}

function isErrorDocument(body: unknown): body is ErrorDocument {
  return typeof body === "object" && body !== null && "detail" in body && "status" in body && "code" in body;
}
