-- +goose Up

-- A publication is what a run predicted for a scheme, published at once. Its rows are written little by little, so that other
-- writers get their turn; what items show for the scheme changes with one row of shown.
CREATE TABLE publications (
  publication  INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id       TEXT NOT NULL,
  schema_name  TEXT NOT NULL,
  published_at REAL NOT NULL
) STRICT;

CREATE TABLE shown (
  schema_name TEXT    NOT NULL PRIMARY KEY,
  publication INTEGER NOT NULL UNIQUE,
  n           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE published RENAME TO published_before;
CREATE TABLE published (
  publication INTEGER NOT NULL,
  instance_id TEXT    NOT NULL,
  payload     TEXT    NOT NULL,
  confidence  REAL,
  PRIMARY KEY (publication, instance_id)
) STRICT, WITHOUT ROWID;

INSERT INTO publications (run_id, schema_name, published_at)
  SELECT run_id, schema_name, max(published_at) FROM published_before GROUP BY run_id, schema_name;
INSERT INTO published SELECT publication, instance_id, payload, confidence
  FROM published_before JOIN publications USING (run_id, schema_name) ORDER BY 1, 2;
INSERT INTO shown SELECT schema_name, publication, (SELECT count(*) FROM published w WHERE w.publication = p.publication) FROM publications p;
DROP TABLE published_before;
