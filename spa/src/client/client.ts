import createClient from "openapi-fetch";
import { noAnswer, problemOf } from "@/client/problem";
import type { paths } from "@/client/schema";

/** The admin API's root, for links that the browser follows by itself. */
export const apiRoot = "/admin/training/api";

/** The typed client of the committed document; every call goes through `answer`. */
export const api = createClient<paths>({
  baseUrl: window.location.origin,
  credentials: "same-origin",
  // Looked up at each call, so that a test may put its own in place.
  fetch: (request) => fetch(request),
});

interface Call<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Awaits a call of `api`: its JSON body, or an ApiError. Texts, which some operations offer too, are not asked for. */
export async function answer<T>(call: Promise<Call<T>>): Promise<Exclude<T, string>> {
  let result: Call<T>;
  try {
    result = await call;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") {
      throw error;
    }
    throw noAnswer();
  }
  if (!result.response.ok) {
    throw problemOf(result.error, result.response);
  }
  return result.data as Exclude<T, string>; // absent only for 204, whose T is undefined
}

/** Opens an event stream; the response's body is read by `follow`. */
export async function openStream(path: string, lastEventId: string, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastEventId !== "") {
    headers["Last-Event-ID"] = lastEventId;
  }
  const response = await fetch(`${apiRoot}${path}`, { headers, signal, credentials: "same-origin", cache: "no-store" });
  if (!response.ok) {
    throw problemOf(await response.json().catch(() => null), response);
  }
  return response;
}
