import { useComputedColorScheme } from "@mantine/core";
import { useElementSize, useMergedRef } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { ChartData } from "./charts";
import classes from "./curves-tab.module.css";

const height = 224;
const dashes = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

/** Draws one chart on a canvas. It is loaded by itself, since most pages have none. */
export default function CurveChart({ chart }: { chart: ChartData }) {
  const { ref: measured, width } = useElementSize();
  const box = useRef<HTMLDivElement>(null);
  const ref = useMergedRef(measured, box);
  const scheme = useComputedColorScheme();
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(chart);
  latest.current = chart;
  const shape = chart.series.map((s) => s.label).join("\n");

  // A canvas knows no CSS variables: another colour scheme, width or set of lines is another plot.
  // biome-ignore lint/correctness/useExhaustiveDependencies: shape and scheme stand for what the plot is built from
  useEffect(() => {
    const target = box.current;
    if (!target || width === 0) {
      return;
    }
    const made = new uPlot(options(latest.current, width, colours(target)), dataOf(latest.current), target);
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [width, scheme, shape]);

  useEffect(() => {
    const frame = requestAnimationFrame(() => plot.current?.setData(dataOf(chart)));
    return () => cancelAnimationFrame(frame);
  }, [chart]);

  return (
    <div
      ref={ref}
      className={classes.room}
      role="img"
      aria-label={`${chart.name} by step; the table below has its figures`}
    />
  );
}

function dataOf(chart: ChartData): uPlot.AlignedData {
  return [chart.steps, ...chart.series.map((s) => s.values)];
}

interface Colours {
  text: string;
  line: string;
  accent: string;
  quiet: string;
  font: string;
}

function colours(element: Element): Colours {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: value("--mantine-color-dimmed"),
    line: value("--line"),
    accent: value("--accent-fill"),
    quiet: value("--line-strong"),
    font: `12px ${style.fontFamily}`,
  };
}

function options(chart: ChartData, width: number, c: Colours): uPlot.Options {
  const axis = {
    stroke: c.text,
    font: c.font,
    grid: { stroke: c.line, width: 1 },
    ticks: { stroke: c.line, width: 1 },
  };
  return {
    width,
    height,
    scales: { x: { time: false } },
    axes: [axis, { ...axis, size: 56 }],
    legend: { live: true },
    cursor: { points: { size: 7 } },
    series: [
      { label: "step", value: (_: uPlot, v: number | null) => (v == null ? "–" : String(v)) },
      ...chart.series.map((s, i) => ({
        label: s.label,
        stroke: s.split === "train" ? c.quiet : c.accent,
        dash: dashes[Math.floor(i / 2) % dashes.length],
        width: 2,
        spanGaps: true,
        points: { show: chart.steps.length < 30 },
        value: (_: uPlot, v: number | null) => (v == null ? "–" : v.toPrecision(3)),
      })),
    ],
  };
}
