-- +goose Up

-- Why a run's files are not all here yet: what went wrong with the last copy from the training machine. Empty once they are.
ALTER TABLE runs ADD COLUMN copy_error TEXT NOT NULL DEFAULT '';
