package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"potato/api"
)

// Lease names the agent that has a run, or had it when the run ended.
type Lease struct {
	RunID     api.RunID
	Lease     string // the secret that the agent shows with every call
	AgentID   string
	ClaimID   string // the question that the run was the answer to
	Host      string
	ClaimedAt float64
	HeardAt   *float64 // when the agent first spoke of the run
	Upload    Upload
}

// Upload is the predictions file that was stored; the zero value when none was.
type Upload struct {
	SHA256 string // as hex
	Bytes  int64
}

const leaseColumns = `run_id, lease, agent_id, claim_id, host, claimed_at, heard_at, coalesce(upload_sha256, ''), coalesce(upload_bytes, 0)`

func scanLease(row *sql.Row) (*Lease, error) {
	var l Lease
	err := row.Scan(&l.RunID, &l.Lease, &l.AgentID, &l.ClaimID, &l.Host, &l.ClaimedAt, &l.HeardAt, &l.Upload.SHA256, &l.Upload.Bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a lease: %w", err)
	}
	return &l, nil
}

// ClaimRun takes a run from the queue and gives it to an agent, in one transaction, so that it has exactly one holder. A
// run that is no longer queued is a Conflict with code run_moved; a token that was replaced meanwhile is token_revoked.
func (d *DB) ClaimRun(ctx context.Context, l Lease, token string, up RunUpdate) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		if err := stillValid(ctx, tx, token); err != nil {
			return err
		}
		if err := moveRun(ctx, tx, l.RunID, api.RunQueued, api.RunBuilding); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO leases (run_id, lease, agent_id, claim_id, host, claimed_at) VALUES (?,?,?,?,?,?)`,
			l.RunID, l.Lease, l.AgentID, l.ClaimID, l.Host, d.seconds()); err != nil {
			return fmt.Errorf("give run %s to an agent: %w", l.RunID, err)
		}
		return updateRun(ctx, tx, l.RunID, up)
	})
}

// RequeueRun takes a run from the agent that has it and puts it back into its place in the queue.
func (d *DB) RequeueRun(ctx context.Context, id api.RunID, from api.RunStatus, message string) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		if err := moveRun(ctx, tx, id, from, api.RunQueued); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM leases WHERE run_id = ?`, id); err != nil {
			return fmt.Errorf("take run %s from its agent: %w", id, err)
		}
		_, err := tx.ExecContext(ctx, `UPDATE runs SET started_at = NULL, waiting_since = NULL, host = '', step = '', handle = NULL,
			bundle_digest = '', message = ? WHERE run_id = ?`, message, id)
		if err != nil {
			return fmt.Errorf("put run %s back into the queue: %w", id, err)
		}
		return nil
	})
}

// HearLease notes that the agent has spoken of its run: it will not go back to the queue any more.
func (d *DB) HearLease(ctx context.Context, id api.RunID, lease string) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE leases SET heard_at = ? WHERE run_id = ? AND lease = ? AND heard_at IS NULL`, d.seconds(), id, lease)
		if err != nil {
			return fmt.Errorf("note that the agent of run %s has spoken: %w", id, err)
		}
		return nil
	})
}

// KeepUpload remembers which predictions file was stored, so that the same one is known when it comes again.
func (d *DB) KeepUpload(ctx context.Context, id api.RunID, u Upload) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE leases SET upload_sha256 = ?, upload_bytes = ? WHERE run_id = ?`, u.SHA256, u.Bytes, id)
		if err != nil {
			return fmt.Errorf("note the upload of run %s: %w", id, err)
		}
		return nil
	})
}

// LeaseOf reads the lease of a run; nil when no agent has it or had it.
func (d *DB) LeaseOf(ctx context.Context, id api.RunID) (*Lease, error) {
	return scanLease(d.r.QueryRowContext(ctx, `SELECT `+leaseColumns+` FROM leases WHERE run_id = ?`, id))
}

// LeaseByClaim finds the lease that was the answer to an agent's question; nil when there is none.
func (d *DB) LeaseByClaim(ctx context.Context, agentID, claimID string) (*Lease, error) {
	return scanLease(d.r.QueryRowContext(ctx, `SELECT `+leaseColumns+` FROM leases WHERE agent_id = ? AND claim_id = ?
		ORDER BY claimed_at DESC LIMIT 1`, agentID, claimID))
}
