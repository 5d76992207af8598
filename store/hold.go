package store

import (
	"context"
	"database/sql"
	"fmt"
)

// HoldRun notes the lease of an agent that the server has started itself. What an earlier agent of the run uploaded stays
// known.
func (d *DB) HoldRun(ctx context.Context, l Lease) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		now := d.seconds()
		_, err := tx.ExecContext(ctx, `INSERT INTO leases (run_id, lease, agent_id, claim_id, host, claimed_at, heard_at) VALUES (?,?,?,?,?,?,?)
			ON CONFLICT (run_id) DO UPDATE SET lease = excluded.lease, agent_id = excluded.agent_id, claim_id = excluded.claim_id,
			host = excluded.host, claimed_at = excluded.claimed_at, heard_at = excluded.heard_at`,
			l.RunID, l.Lease, l.AgentID, l.ClaimID, l.Host, now, now)
		if err != nil {
			return fmt.Errorf("give run %s to an agent: %w", l.RunID, err)
		}
		return nil
	})
}
