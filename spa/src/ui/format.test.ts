import { expect, test } from "vitest";
import { ago, bytes, duration, score, sentence, timeLeft } from "@/ui/format";

test.each([
  [0.04, "0.0 s"],
  [0.796, "0.8 s"],
  [41, "41 s"],
  [59.6, "1 min"],
  [192, "3 min 12 s"],
  [7500, "2 h 5 min"],
  [7201, "2 h"],
  [273_600, "3 d 4 h"],
])("duration of %d s", (seconds, want) => {
  expect(duration(seconds)).toBe(want);
});

test.each([
  [-20, "just now"],
  [9, "just now"],
  [45, "40 s ago"],
  [130, "2 min ago"],
  [7300, "2 h ago"],
  [90_000, "yesterday"],
  [400_000, "4 days ago"],
])("%d s ago", (seconds, want) => {
  expect(ago(1000, 1000 + seconds)).toBe(want);
});

test.each([
  [3, "a few seconds left"],
  [42, "~40 s left"],
  [170, "~3 min left"],
  [7200, "~2.0 h left"],
])("%d s left", (seconds, want) => {
  expect(timeLeft(seconds)).toBe(want);
});

test.each([
  [0.8421, "0.84"],
  [1, "1.00"],
  [0.9999, ">0.99"],
  [0.994, "0.99"],
])("score %d", (value, want) => {
  expect(score(value)).toBe(want);
});

test.each([
  [999, "999 B"],
  [2_411_724, "2.4 MB"],
  [999_960, "1.0 MB"],
  [4_402_345_671, "4.4 GB"],
])("%d bytes", (n, want) => {
  expect(bytes(n)).toBe(want);
});

test("begins as a sentence does", () => {
  expect(["its files were removed", ""].map(sentence)).toEqual(["Its files were removed", ""]);
});
