import { useEffect, useRef, useState } from "react";
import type { ApiError } from "@/client/problem";
import { follow, type Message, type StreamState } from "@/client/stream";

interface StreamHandlers {
  onMessage: (message: Message) => void;
  onRefused?: (error: ApiError) => void;
  again?: () => boolean;
}

/**
 * Follows a stream while the component lives and its tab is looked at. A hidden tab lets go: browsers allow six
 * connections to a server, and a handful of forgotten tabs would take them all.
 */
export function useStream(path: string, enabled: boolean, handlers: StreamHandlers): StreamState {
  const [state, setState] = useState<StreamState>("connecting");
  const latest = useRef(handlers);
  latest.current = handlers;

  useEffect(() => {
    if (!enabled) {
      return;
    }
    let controller: AbortController | undefined;
    const start = () => {
      controller = new AbortController();
      void follow({
        path,
        signal: controller.signal,
        onMessage: (message) => latest.current.onMessage(message),
        onState: (next, error) => {
          setState(next);
          if (error) {
            latest.current.onRefused?.(error);
          }
        },
        again: () => latest.current.again?.() ?? true,
      });
    };
    const onVisibility = () => {
      if (document.visibilityState === "hidden") {
        controller?.abort();
        controller = undefined;
      } else if (controller === undefined) {
        start();
      }
    };
    onVisibility();
    document.addEventListener("visibilitychange", onVisibility);
    return () => {
      document.removeEventListener("visibilitychange", onVisibility);
      controller?.abort();
    };
  }, [path, enabled]);

  return state;
}
