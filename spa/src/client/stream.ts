import { openStream } from "@/client/client";
import { ApiError } from "@/client/problem";

/** One server-sent event. */
export interface Message {
  id: string;
  data: string;
}

/** Reads server-sent events off a body: lines end in LF, CRLF or CR, a blank line ends a message, ":" is a comment. */
export async function* readMessages(body: ReadableStream<Uint8Array>, onBytes?: () => void): AsyncGenerator<Message> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let id = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return; // a message without its blank line was cut off: it comes again after Last-Event-ID
      }
      onBytes?.();
      rest += decoder.decode(value, { stream: true });
      // A CR at the very end may be half of a CRLF: it waits for the next chunk.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) {
            yield { id, data: data.join("\n") };
          }
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "data") {
          data.push(value);
        } else if (field === "id") {
          id = value;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** How a stream stands: between connections it waits, once refused it has given up. */
export type StreamState = "connecting" | "open" | "waiting" | "ended" | "refused";

interface FollowOptions {
  path: string;
  signal: AbortSignal;
  onMessage: (message: Message) => void;
  onState?: (state: StreamState, error?: ApiError) => void;
  /** Whether to connect again after the server closed the stream in good order. */
  again: () => boolean;
}

const firstWaitMs = 500;
const longestWaitMs = 15_000;
const silenceMs = 45_000; // the server sends a comment every 15 s

/** Follows a stream until the signal ends it: reconnects after the last id seen, waiting longer each time in vain. */
export async function follow({ path, signal, onMessage, onState, again }: FollowOptions): Promise<void> {
  let lastId = "";
  let wait = firstWaitMs;
  while (!signal.aborted) {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    signal.addEventListener("abort", stop);
    let watchdog = setTimeout(stop, silenceMs);
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(stop, silenceMs);
    };
    try {
      onState?.("connecting");
      const response = await openStream(path, lastId, attempt.signal);
      if (response.body) {
        onState?.("open");
        for await (const message of readMessages(response.body, heard)) {
          lastId = message.id || lastId;
          wait = firstWaitMs;
          onMessage(message);
        }
      }
      if (!again()) {
        onState?.("ended");
        return;
      }
    } catch (error) {
      // What the server refuses it will refuse again; everything else may pass.
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        onState?.("refused", error);
        return;
      }
    } finally {
      clearTimeout(watchdog);
      signal.removeEventListener("abort", stop);
    }
    if (!signal.aborted) {
      onState?.("waiting");
      await pause(wait * (0.75 + Math.random() / 2), signal);
      wait = Math.min(wait * 2, longestWaitMs);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
