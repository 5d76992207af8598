import { expect, test } from "vitest";
import type { Event } from "@/client/schema";
import { chartsOf } from "./charts";
import { addEvents, noCurves } from "./live-curves";

const metric = (seq: number, split: string, value: number, step: unknown = seq): Event => ({
  v: 1,
  event: "metric",
  t: 0,
  seq,
  name: "loss",
  split,
  value,
  step,
});

test("curves grow event by event, and a stream that begins again adds nothing twice", () => {
  const first = addEvents(noCurves, [metric(1, "train", 0.9), metric(2, "val", 0.8)]);
  const second = addEvents(first, [metric(1, "train", 0.9), metric(2, "val", 0.8), metric(3, "train", 0.5)]);
  expect(second.curves.map((c) => [c.split, c.points.map((p) => p.value)])).toEqual([
    ["train", [0.9, 0.5]],
    ["val", [0.8]],
  ]);
  expect(first.curves[0]?.points.length).toBe(1);
});

test("other events move the place only", () => {
  const log: Event = { v: 1, event: "log", t: 0, seq: 4, msg: "hello" };
  expect(addEvents(noCurves, [log])).toEqual({ lastSeq: 4, curves: [] });
});

test("a metric without a step takes the next place", () => {
  const state = addEvents(noCurves, [metric(1, "train", 0.9, null), metric(2, "train", 0.8, null)]);
  expect(state.curves[0]?.points.map((p) => p.step)).toEqual([0, 1]);
});

test("charts lay curves over common steps, loss first", () => {
  const point = (step: number, value: number) => ({ step, value, t: 0 });
  const charts = chartsOf([
    { schema: "", split: "val", name: "accuracy", attempt: 1, points: [point(1, 0.5)] },
    { schema: "", split: "train", name: "loss", attempt: 1, points: [point(0, 3), point(1, 2), point(2, 1)] },
    { schema: "", split: "val", name: "loss", attempt: 1, points: [point(1, 2.5)] },
  ]);
  expect(charts.map((c) => c.name)).toEqual(["loss", "accuracy"]);
  expect(charts[0]?.steps).toEqual([0, 1, 2]);
  expect(charts[0]?.series).toEqual([
    { label: "train", split: "train", values: [3, 2, 1] },
    { label: "val", split: "val", values: [null, 2.5, null] },
  ]);
});
