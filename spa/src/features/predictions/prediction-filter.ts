/** What the predictions are narrowed to; it lives in the page's address. */
export interface PredictionFilter {
  schema?: string;
  split?: Split;
  label?: string;
  target?: string;
  wrong?: boolean;
  q?: string;
}

export type Split = "val" | "test" | "unlabeled";

export const splitWords: Record<Split, string> = { test: "test", val: "validation", unlabeled: "unlabelled" };

export function isSplit(text: string | null | undefined): text is Split {
  return text === "val" || text === "test" || text === "unlabeled";
}

const texts = ["schema", "label", "target", "q"] as const;

/** Reads a filter from an address. */
export function readPredictionFilter(params: URLSearchParams): PredictionFilter {
  const filter: PredictionFilter = {};
  for (const key of texts) {
    const value = params.get(key);
    if (value) {
      filter[key] = value;
    }
  }
  const split = params.get("split");
  if (isSplit(split)) {
    filter.split = split;
  }
  if (params.get("wrong") === "true") {
    filter.wrong = true;
  }
  return filter;
}

/** Writes it into the parameters of an address. */
export function predictionParams(filter: PredictionFilter): Record<string, string> {
  const params: Record<string, string> = {};
  for (const key of [...texts, "split"] as const) {
    const value = filter[key];
    if (value) {
      params[key] = value;
    }
  }
  if (filter.wrong) {
    params.wrong = "true";
  }
  return params;
}
