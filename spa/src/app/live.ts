import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { Run } from "@/client/schema";
import { useStream } from "@/client/use-stream";
import { patchRun } from "@/features/runs/cache";
import { runKeys } from "@/features/runs/queries";
import { shortId } from "@/features/runs/words";

interface Live {
  connected: boolean;
  /** The last change of a run's state, to be read out. */
  announcement: string;
}

const gatherMs = 100;

/** Keeps every query that shows runs at what the server last said; the one stream that all pages share. */
export function useLiveRuns(): Live {
  const client = useQueryClient();
  const [announcement, setAnnouncement] = useState("");
  // A quick trainer reports many times a second: the page changes ten times at most.
  const gathered = useRef(new Map<string, Run>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  const flush = () => {
    timer.current = undefined;
    for (const run of gathered.current.values()) {
      const { before } = patchRun(client, run);
      if (before !== undefined && before !== run.status) {
        setAnnouncement(`Run ${shortId(run.run_id)}: ${run.status}`);
      }
    }
    gathered.current.clear();
  };

  const state = useStream("/changes", true, {
    onMessage: (message) => {
      const run: Run = JSON.parse(message.data);
      gathered.current.set(run.run_id, run);
      timer.current ??= setTimeout(flush, gatherMs);
    },
    onRefused: () => void client.invalidateQueries({ queryKey: runKeys.status }),
  });

  // After a gap the stream tells what goes on, not what has ended meanwhile.
  const opened = useRef(false);
  useEffect(() => {
    if (state !== "open") {
      return;
    }
    if (opened.current) {
      for (const queryKey of [runKeys.status, runKeys.lists, ["run"]]) {
        void client.invalidateQueries({ queryKey });
      }
    }
    opened.current = true;
  }, [state, client]);

  return { connected: useConnected(state === "open"), announcement };
}

/** A line that is back within moments is not worth a word. */
function useConnected(open: boolean): boolean {
  const [connected, setConnected] = useState(true);
  useEffect(() => {
    const timer = setTimeout(() => setConnected(open), open ? 0 : 1500);
    return () => clearTimeout(timer);
  }, [open]);
  return connected;
}
