import { expect, test } from "vitest";
import { given, problemWith, readFields } from "./params";

const fields = readFields({
  type: "object",
  properties: {
    C: { type: "number", title: "Regularisation", exclusiveMinimum: 0, maximum: 10, default: 1 },
    epochs: { type: "integer", minimum: 1, default: 3 },
    analyzer: { type: "string", enum: ["word", "char_wb"], default: "word" },
    weight: { type: ["string", "null"], enum: ["balanced", null], default: null },
    lowercase: { type: "boolean", default: true },
    model: { type: "string" },
    stop: { type: "array", items: { type: "string" }, default: [] },
    limit: { type: ["integer", "null"], minimum: 10, default: null },
    extra: { type: "object" },
  },
  required: ["model"],
});
const field = (name: string) => {
  const found = fields.find((f) => f.name === name);
  if (!found) {
    throw new Error(`no field ${name}`);
  }
  return found;
};

test("each rule gets the input that fits it", () => {
  expect(Object.fromEntries(fields.map((f) => [f.name, f.kind]))).toEqual({
    C: "number",
    epochs: "integer",
    analyzer: "choice",
    weight: "choice",
    lowercase: "switch",
    model: "text",
    stop: "texts",
    limit: "integer",
    extra: "json",
  });
  expect(field("C").title).toBe("Regularisation");
  expect(field("epochs").title).toBe("epochs");
});

test.each([
  ["C", 0, "C must be more than 0"],
  ["C", 11, "C must be at most 10"],
  ["C", 10, ""],
  ["C", "x", "C must be a number"],
  ["epochs", 1.5, "epochs must be a whole number"],
  ["epochs", 0, "epochs must be at least 1"],
  ["model", undefined, "model is missing"],
  ["limit", null, ""],
  ["limit", 3, "limit must be at least 10"],
  ["epochs", null, "epochs may not be empty"],
])("%s = %s", (name, value, want) => {
  expect(problemWith(field(name), value)).toBe(want);
});

test("only what differs from the defaults is sent", () => {
  expect(given(fields, { C: 1, epochs: 5, stop: [], weight: "balanced", lowercase: true })).toEqual({
    epochs: 5,
    weight: "balanced",
  });
});
