import { useEffect, useRef, useState } from "react";
import type { Curve, Event } from "@/client/schema";
import { useStream } from "@/client/use-stream";
import { addEvents, noCurves } from "@/features/metrics/live-curves";

const gatherMs = 200;

/** The curves of a run under way, as its events bring them. */
export function useRunCurves(id: string, active: boolean): readonly Curve[] {
  const [state, setState] = useState(noCurves);
  const gathered = useRef<Event[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  useStream(`/runs/${id}/events`, active, {
    onMessage: (message) => {
      const event: Event = JSON.parse(message.data);
      gathered.current.push(event);
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        const events = gathered.current;
        gathered.current = [];
        setState((before) => addEvents(before, events));
      }, gatherMs);
    },
    again: () => active,
  });
  return state.curves;
}
