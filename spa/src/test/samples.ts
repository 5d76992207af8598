import type { Run, SchemeSummary, Trainer } from "@/client/schema";

/** A run that succeeded; a test changes what it is about. */
export function sampleRun(change: Partial<Run> = {}): Run {
  return {
    run_id: "20261129T192252-d3d870",
    status: "success",
    trainer: "sklearn-text",
    schema_names: ["sentiment"],
    kinds: ["nominal"],
    backend: "local",
    host: "lab",
    device: "cpu",
    trigger: "page",
    created_by: "admin",
    created_at: 1_795_980_000,
    started_at: 1_795_980_001,
    finished_at: 1_795_980_042,
    scheduler_wait_s: 0,
    duration: 41,
    n_train: 288,
    n_val: 48,
    n_test: 76,
    n_unlabeled: 1588,
    split_seed: 0,
    params: {},
    metrics: {},
    metrics_by_schema: {},
    error: "",
    error_code: "",
    hint: "",
    message: "",
    warnings: [],
    model_version: "",
    bundle_digest: "",
    artifact_uri: "",
    step: "",
    progress: null,
    attempt: 1,
    writeback: null,
    n_published: 0,
    queue: null,
    cancel_requested: false,
    environment: {},
    ...change,
  };
}

export function sampleScheme(change: Partial<SchemeSummary> = {}): SchemeSummary {
  return {
    name: "sentiment",
    annotation_type: "radio",
    kind: "nominal",
    description: "",
    trainable: true,
    trainers: ["sklearn-text"],
    reason: "",
    n_items: 2000,
    n_labeled: 412,
    n_unlabeled: 1588,
    predicts_unlabeled: true,
    n_annotators: 3,
    label_counts: [
      { label: "positive", n: 230 },
      { label: "negative", n: 182 },
    ],
    agreement: 0.81,
    ...change,
  };
}

export function sampleTrainer(change: Partial<Trainer> = {}): Trainer {
  return {
    name: "sklearn-text",
    description: "TF-IDF and a linear classifier.",
    licence: "BSD-3-Clause",
    licence_url: "",
    commercial_use: true,
    kinds: ["nominal"],
    modalities: ["text"],
    packages: ["scikit-learn"],
    missing_packages: [],
    install_hint: "pip install scikit-learn",
    available: true,
    unavailable_reason: "",
    params: { type: "object", properties: { C: { type: "number", exclusiveMinimum: 0, default: 1 } } },
    distributed: false,
    local_only: false,
    checkpoints: false,
    source: "built-in",
    ...change,
  };
}
