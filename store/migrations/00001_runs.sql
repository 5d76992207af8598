-- +goose Up

-- One row a run; seq is its place in the queue. Lists and maps are JSON. What a server must find again after a restart
-- (lease to finish) stands beside what people read.
CREATE TABLE runs (
  seq               INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id            TEXT    NOT NULL UNIQUE,
  status            TEXT    NOT NULL,
  trainer           TEXT    NOT NULL,
  schema_names      TEXT    NOT NULL,
  kinds             TEXT    NOT NULL,
  backend           TEXT    NOT NULL,
  host              TEXT    NOT NULL DEFAULT '',
  device            TEXT    NOT NULL DEFAULT '',
  trigger           TEXT    NOT NULL,
  created_by        TEXT    NOT NULL,
  created_at        REAL    NOT NULL,
  started_at        REAL,
  finished_at       REAL,
  n_train           INTEGER NOT NULL DEFAULT 0,
  n_val             INTEGER NOT NULL DEFAULT 0,
  n_test            INTEGER NOT NULL DEFAULT 0,
  n_unlabeled       INTEGER NOT NULL DEFAULT 0,
  split_seed        INTEGER NOT NULL DEFAULT 0,
  params            TEXT    NOT NULL,
  metrics           TEXT    NOT NULL DEFAULT '{}',
  metrics_by_schema TEXT    NOT NULL DEFAULT '{}',
  error             TEXT    NOT NULL DEFAULT '',
  error_code        TEXT    NOT NULL DEFAULT '',
  hint              TEXT    NOT NULL DEFAULT '',
  message           TEXT    NOT NULL DEFAULT '',
  warnings          TEXT    NOT NULL DEFAULT '[]',
  model_version     TEXT    NOT NULL DEFAULT '',
  bundle_digest     TEXT    NOT NULL DEFAULT '',
  artifact_uri      TEXT    NOT NULL DEFAULT '',
  step              TEXT    NOT NULL DEFAULT '',
  progress          TEXT,
  attempt           INTEGER NOT NULL DEFAULT 1,
  writeback         TEXT,
  environment       TEXT    NOT NULL DEFAULT '{}',
  cancel_requested  INTEGER NOT NULL DEFAULT 0,
  lease             TEXT    NOT NULL DEFAULT '',
  handle            TEXT,
  received          TEXT,
  result            TEXT,
  finish            TEXT,
  scores            TEXT,
  n_predictions     INTEGER,
  n_published       INTEGER NOT NULL DEFAULT 0,
  pruned_at         REAL
) STRICT;
CREATE INDEX runs_by_status ON runs (status, created_at, seq);
CREATE INDEX runs_by_created_at ON runs (created_at, seq);

-- The items of a run in the order of its bundle. Text is there for the items that get predictions, cut short.
CREATE TABLE run_items (
  run_id      TEXT    NOT NULL,
  n           INTEGER NOT NULL,
  instance_id TEXT    NOT NULL,
  split       TEXT    NOT NULL,
  text        TEXT,
  PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;

-- What annotators said of the held-out items: a sorted JSON list of labels for each scheme.
CREATE TABLE run_targets (
  run_id      TEXT    NOT NULL,
  item        INTEGER NOT NULL,
  schema_name TEXT    NOT NULL,
  labels      TEXT    NOT NULL,
  PRIMARY KEY (run_id, item, schema_name)
) STRICT, WITHOUT ROWID;

-- Every item that any run ever trained on, pruned and deleted runs included: the leak guard of write-back.
CREATE TABLE trained_items (
  instance_id TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- What a run predicted, in the order of its file; item is run_items.n. Rows are only ever added: appending to the end of
-- the tree is what makes a million of them quick.
CREATE TABLE predictions (
  run_id      TEXT    NOT NULL,
  n           INTEGER NOT NULL,
  item        INTEGER NOT NULL,
  schema_name TEXT    NOT NULL,
  split       TEXT    NOT NULL,
  labels      TEXT    NOT NULL,
  confidence  REAL,
  correct     INTEGER,
  payload     TEXT    NOT NULL,
  PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;

-- Which run's prediction an item shows to annotators.
CREATE TABLE published (
  instance_id  TEXT NOT NULL,
  schema_name  TEXT NOT NULL,
  run_id       TEXT NOT NULL,
  payload      TEXT NOT NULL,
  confidence   REAL,
  published_at REAL NOT NULL,
  PRIMARY KEY (instance_id, schema_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX published_by_run ON published (run_id);

-- What automatic retraining remembers over a restart: how many annotations there were when it last started a run.
CREATE TABLE auto_retrain (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  n_annotations INTEGER NOT NULL,
  started_at    REAL    NOT NULL,
  run_id        TEXT    NOT NULL
) STRICT;
