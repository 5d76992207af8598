-- +goose Up

-- The tokens of agent backends, as SHA-256 alone. The one without replaced_at is valid; those before it stay, so that an
-- agent that still has one is told what happened.
CREATE TABLE tokens (
  sha256        TEXT NOT NULL PRIMARY KEY,
  backend       TEXT NOT NULL,
  created_at    REAL NOT NULL,
  first_used_at REAL,
  last_seen     REAL,
  replaced_at   REAL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX valid_tokens ON tokens (backend) WHERE replaced_at IS NULL;

-- The agents that asked for work.
CREATE TABLE agents (
  backend    TEXT NOT NULL,
  agent_id   TEXT NOT NULL,
  host       TEXT NOT NULL,
  version    TEXT NOT NULL,
  first_seen REAL NOT NULL,
  last_seen  REAL NOT NULL,
  PRIMARY KEY (backend, agent_id)
) STRICT, WITHOUT ROWID;

-- Which agent has a run, or had it when the run ended. claim_id is the question that the run was the answer to. heard_at is
-- when the agent first spoke of the run. upload_* tell which predictions file was stored.
CREATE TABLE leases (
  run_id        TEXT NOT NULL PRIMARY KEY,
  lease         TEXT NOT NULL,
  agent_id      TEXT NOT NULL,
  claim_id      TEXT NOT NULL,
  host          TEXT NOT NULL,
  claimed_at    REAL NOT NULL,
  heard_at      REAL,
  upload_sha256 TEXT,
  upload_bytes  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_by_claim ON leases (agent_id, claim_id);

-- When a queued run first had a place and no agent to take it: queue_timeout_s counts from there.
ALTER TABLE runs ADD COLUMN waiting_since REAL;
-- Leases have a table of their own.
ALTER TABLE runs DROP COLUMN lease;
