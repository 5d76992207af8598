import { QueryClient } from "@tanstack/react-query";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { ApiError } from "@/client/problem";
import type { SchemeSummary, Trainer } from "@/client/schema";
import { renderInApp } from "@/test/render";
import { sampleScheme, sampleTrainer } from "@/test/samples";
import { labelledSentence } from "./labelled";
import { schemesQuery, trainersQuery } from "./queries";
import { TrainPanel } from "./train-panel";

const local = { backend: "local", local: true, reason: "" };

function show(schemas: SchemeSummary[], trainers: Trainer[] = [sampleTrainer()], place = local) {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY } } });
  client.setQueryData(trainersQuery.queryKey, { trainers });
  client.setQueryData(schemesQuery.queryKey, { schemas });
  const onTrain = vi.fn();
  renderInApp(<TrainPanel place={place} runsOn={() => null} onTrain={onTrain} />, client);
  return onTrain;
}

const trainButton = () => screen.queryByRole("button", { name: "Train" });

test("sends what is chosen", async () => {
  const onTrain = show([sampleScheme()]);
  onTrain.mockResolvedValue({ run_id: "20261129T192252-d3d870", started: true });
  await userEvent.click(screen.getByRole("button", { name: "Train" }));
  expect(onTrain).toHaveBeenCalledWith({ trainer: "sklearn-text", schemas: ["sentiment"], backend: "local" });
  await screen.findByText("The run has started.");
});

test("a changed parameter is sent, and one out of bounds stops the start", async () => {
  const onTrain = show([sampleScheme()]);
  onTrain.mockResolvedValue({ run_id: "x", started: false, queue: { position: 2, waiting_for: "" } });
  await userEvent.click(screen.getByRole("button", { name: /Parameters/ }));
  const c = screen.getByLabelText("C");
  await userEvent.clear(c);
  await userEvent.type(c, "0");
  expect(screen.getByText("C must be more than 0")).toBeTruthy();
  expect(trainButton()).toHaveProperty("disabled", true);
  await userEvent.clear(c);
  await userEvent.type(c, "2.5");
  await userEvent.click(screen.getByRole("button", { name: "Train" }));
  expect(onTrain).toHaveBeenCalledWith(expect.objectContaining({ params: { C: 2.5 } }));
  await screen.findByText("The run waits in the queue, number 2.");
});

test("what the server refuses stands at its field", async () => {
  const onTrain = show([sampleScheme()]);
  onTrain.mockRejectedValue(
    new ApiError({
      status: 422,
      code: "bad_params",
      detail: "1 parameter is wrong",
      hint: "",
      errors: [{ path: "body.params.C", message: "C must not be 1" }],
    }),
  );
  await userEvent.click(screen.getByRole("button", { name: "Train" }));
  await waitFor(() => expect(screen.getAllByText(/C must not be 1/).length).toBe(2));
});

test.each([
  [
    "too few labels",
    [sampleScheme({ trainable: false, reason: "10 labelled items are needed, there are 6" })],
    undefined,
    local,
    "10 labelled items are needed, there are 6",
  ],
  [
    "no scheme that the trainer takes",
    [sampleScheme({ trainers: [] })],
    undefined,
    local,
    "sklearn-text takes none of the study's schemes.",
  ],
  [
    "a missing package",
    [sampleScheme()],
    [sampleTrainer({ available: false, unavailable_reason: "scikit-learn is missing" })],
    local,
    "scikit-learn is missing. To have it: pip install scikit-learn",
  ],
  [
    "a place that is not served",
    [sampleScheme()],
    undefined,
    { backend: "gpu", local: false, reason: "gpu cannot train now: not yet" },
    "gpu cannot train now: not yet",
  ],
])("a reason in place of a dead button: %s", (_, schemas, trainers, place, reason) => {
  show(schemas, trainers, place);
  expect(screen.getByRole("note").textContent).toBe(reason);
  expect(trainButton()).toBeNull();
});

test("says what there is to learn from", () => {
  expect(labelledSentence(sampleScheme())).toBe(
    "412 labelled · positive 230, negative 182 · α 0.81 · predicts 1,588 unlabelled",
  );
  expect(labelledSentence(sampleScheme({ agreement: null, predicts_unlabeled: false }))).toBe(
    "412 labelled · positive 230, negative 182 · 1,588 unlabelled",
  );
  const many = sampleScheme({ label_counts: [..."abcdefg"].map((label, i) => ({ label, n: 9 - i })), n_unlabeled: 0 });
  expect(labelledSentence(many)).toBe("412 labelled · a 9, b 8, c 7, d 6, e 5, 2 more · α 0.81");
});
