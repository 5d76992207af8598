-- +goose Up

-- How long a run's jobs have waited in the queue of their cluster's scheduler, in seconds, and since when one waits there now.
ALTER TABLE runs ADD COLUMN scheduler_wait_s REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN scheduler_since REAL;
