import type { Curve, Event } from "@/client/schema";

/** The curves of a run under way, grown from its metric events. */
export interface LiveCurves {
  lastSeq: number;
  curves: Curve[];
}

export const noCurves: LiveCurves = { lastSeq: 0, curves: [] };

/** Adds events in their order; a stream that begins again brings known ones, which are passed over. */
export function addEvents(state: LiveCurves, events: readonly Event[]): LiveCurves {
  let lastSeq = state.lastSeq;
  const grown = new Map<string, Curve>();
  for (const event of events) {
    const seq = event.seq ?? lastSeq + 1;
    if (seq <= lastSeq) {
      continue;
    }
    lastSeq = seq;
    if (event.event !== "metric" || event.name === undefined || event.value == null) {
      continue;
    }
    const attempt = event.attempt ?? 1;
    const key = JSON.stringify([event.schema ?? "", event.split ?? "", event.name, attempt]);
    let curve = grown.get(key);
    if (!curve) {
      const known = state.curves.find((c) => keyOf(c) === key);
      curve = known
        ? { ...known, points: [...known.points] }
        : { schema: event.schema ?? "", split: event.split ?? "", name: event.name, attempt, points: [] };
      grown.set(key, curve);
    }
    const step = typeof event.step === "number" ? event.step : curve.points.length;
    curve.points.push({ step, value: event.value, t: event.t });
  }
  if (grown.size === 0) {
    return lastSeq === state.lastSeq ? state : { ...state, lastSeq };
  }
  const kept = state.curves.map((c) => grown.get(keyOf(c)) ?? c);
  const fresh = [...grown.values()].filter((c) => !state.curves.some((k) => keyOf(k) === keyOf(c)));
  return { lastSeq, curves: [...kept, ...fresh] };
}

function keyOf(curve: Curve): string {
  return JSON.stringify([curve.schema, curve.split, curve.name, curve.attempt]);
}
