import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { follow, type Message, readMessages, type StreamState } from "@/client/stream";

function bodyOf(...chunks: string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) {
        controller.enqueue(encoder.encode(chunk));
      }
      controller.close();
    },
  });
}

async function read(...chunks: string[]): Promise<Message[]> {
  const messages: Message[] = [];
  for await (const message of readMessages(bodyOf(...chunks))) {
    messages.push(message);
  }
  return messages;
}

test.each([
  ["plain", ["id: 1\ndata: a\n\n"], [{ id: "1", data: "a" }]],
  [
    "an id stays until another comes",
    ["id: 7\ndata: a\n\ndata: b\n\n"],
    [
      { id: "7", data: "a" },
      { id: "7", data: "b" },
    ],
  ],
  ["several data lines", ["data: a\ndata: b\n\n"], [{ id: "", data: "a\nb" }]],
  ["comments and unknown fields", [": hello\n\nretry: 5\nevent: x\ndata:a\n\n"], [{ id: "", data: "a" }]],
  ["CRLF", ["id: 1\r\ndata: a\r\n\r\n"], [{ id: "1", data: "a" }]],
  [
    "CRLF cut in two",
    ["data: a\r", "\n\r", "\ndata: b\n\n"],
    [
      { id: "", data: "a" },
      { id: "", data: "b" },
    ],
  ],
  ["cut anywhere", ["da", 'ta: {"x"', ": 1}\n", "\n"], [{ id: "", data: '{"x": 1}' }]],
  ["what was cut off does not count", ["data: a\n\ndata: b\n"], [{ id: "", data: "a" }]],
])("reads a stream: %s", async (_, chunks, want) => {
  expect(await read(...chunks)).toEqual(want);
});

test("reads letters whose bytes come apart", async () => {
  const bytes = new TextEncoder().encode("data: न\n\n");
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes.slice(0, 7));
      controller.enqueue(bytes.slice(7));
      controller.close();
    },
  });
  const messages: Message[] = [];
  for await (const message of readMessages(body)) {
    messages.push(message);
  }
  expect(messages).toEqual([{ id: "", data: "न" }]);
});

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) {
    cleanup();
  }
});

/** Serves over a real listener, which the page's addresses are led to. */
async function serve(handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<void> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const real = globalThis.fetch;
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => real(`http://127.0.0.1:${port}${path}`, init));
  cleanups.push(() => {
    vi.unstubAllGlobals();
    server.closeAllConnections();
    server.close();
  });
}

test("goes on after the last event seen when the connection breaks", async () => {
  const asked: (string | undefined)[] = [];
  await serve((request, response) => {
    const last = request.headers["last-event-id"] as string | undefined;
    asked.push(last);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    if (last === undefined) {
      response.write("id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: lo", () => response.destroy());
    } else {
      response.end("id: 3\ndata: c\n\n");
    }
  });
  const got: string[] = [];
  const states: StreamState[] = [];
  await follow({
    path: "/changes",
    signal: new AbortController().signal,
    onMessage: (message) => got.push(message.data),
    onState: (state) => states.push(state),
    again: () => got.length < 3,
  });
  expect(got).toEqual(["a", "b", "c"]);
  expect(asked).toEqual([undefined, "2"]);
  expect(states).toEqual(["connecting", "open", "waiting", "connecting", "open", "ended"]);
});

test("gives up when it is refused, and says why", async () => {
  await serve((_, response) => {
    response.writeHead(401, { "Content-Type": "application/problem+json" });
    response.end('{"type":"about:blank","title":"","status":401,"detail":"Sign in first","code":"no_key"}');
  });
  let refused = "";
  await follow({
    path: "/changes",
    signal: new AbortController().signal,
    onMessage: () => undefined,
    onState: (_, error) => {
      refused = error?.message ?? refused;
    },
    again: () => true,
  });
  expect(refused).toBe("Sign in first");
});

test("lets go when it is told to", async () => {
  let closed = false;
  await serve((request, response) => {
    request.on("close", () => {
      closed = true;
    });
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("data: a\n\n");
  });
  const controller = new AbortController();
  await follow({
    path: "/changes",
    signal: controller.signal,
    onMessage: () => controller.abort(),
    again: () => true,
  });
  await vi.waitFor(() => expect(closed).toBe(true));
});
