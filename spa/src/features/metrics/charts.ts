import type { Curve } from "@/client/schema";

/** One chart: the steps along the bottom and a line for each split, scheme and attempt. */
export interface ChartData {
  name: string;
  steps: number[];
  series: { label: string; split: string; values: (number | null)[] }[];
}

/** Groups curves into charts by what they measure; loss comes first. */
export function chartsOf(curves: readonly Curve[]): ChartData[] {
  const names = [...new Set(curves.map((c) => c.name))].sort(
    (a, b) => Number(b === "loss") - Number(a === "loss") || a.localeCompare(b),
  );
  const manySchemes = new Set(curves.map((c) => c.schema)).size > 1;
  const manyAttempts = new Set(curves.map((c) => c.attempt)).size > 1;
  return names.map((name) => {
    const own = curves.filter((c) => c.name === name && c.points.length > 0);
    const steps = [...new Set(own.flatMap((c) => c.points.map((p) => p.step)))].sort((a, b) => a - b);
    const at = new Map(steps.map((step, i) => [step, i]));
    return {
      name,
      steps,
      series: own.map((curve) => {
        const values: (number | null)[] = new Array(steps.length).fill(null);
        for (const point of curve.points) {
          values[at.get(point.step) ?? 0] = point.value;
        }
        const label = [
          curve.split || name,
          manySchemes && curve.schema,
          manyAttempts && `attempt ${curve.attempt}`,
        ].filter(Boolean);
        return { label: label.join(", "), split: curve.split, values };
      }),
    };
  });
}
