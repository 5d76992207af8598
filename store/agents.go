package store

import (
	"context"
	"database/sql"
	"fmt"

	"potato/api"
)

// AgentSeen is an agent that was heard of. With an empty AgentID only its token is known.
type AgentSeen struct {
	Token   string // SHA-256 of the token that it came with
	Backend string
	AgentID string
	Host    string // empty: as before
	Version string
	At      float64
}

// forgetAgentsAfter is how long an agent that is not heard of stays listed, in seconds.
const forgetAgentsAfter = 90 * 24 * 3600

// SeeAgents notes that agents, and with them their tokens, were heard of.
func (d *DB) SeeAgents(ctx context.Context, seen []AgentSeen) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		for _, a := range seen {
			if _, err := tx.ExecContext(ctx, `UPDATE tokens SET first_used_at = coalesce(first_used_at, ?1),
				last_seen = max(coalesce(last_seen, 0), ?1) WHERE sha256 = ?2`, a.At, a.Token); err != nil {
				return fmt.Errorf("note that a token was used: %w", err)
			}
			if a.AgentID == "" {
				continue
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO agents (backend, agent_id, host, version, first_seen, last_seen)
				VALUES (?,?,?,?,?,?) ON CONFLICT DO UPDATE SET last_seen = max(last_seen, excluded.last_seen),
				host = coalesce(nullif(excluded.host, ''), host), version = coalesce(nullif(excluded.version, ''), version)`,
				a.Backend, a.AgentID, a.Host, a.Version, a.At, a.At); err != nil {
				return fmt.Errorf("note that an agent was heard of: %w", err)
			}
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM agents WHERE last_seen < ?`, d.seconds()-forgetAgentsAfter); err != nil {
			return fmt.Errorf("forget agents: %w", err)
		}
		return nil
	})
}

// maxAgents bounds how many agents of a backend are listed.
const maxAgents = 100

// AgentsOf lists the agents of a backend, the one heard of last first.
func (d *DB) AgentsOf(ctx context.Context, backend string) ([]api.AgentSeen, error) {
	rows, err := d.r.QueryContext(ctx, `SELECT agent_id, host, version, last_seen FROM agents WHERE backend = ?
		ORDER BY last_seen DESC, agent_id LIMIT ?`, backend, maxAgents)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	agents := []api.AgentSeen{}
	for rows.Next() {
		var a api.AgentSeen
		if err := rows.Scan(&a.AgentID, &a.Host, &a.Version, &a.LastSeen); err != nil {
			return nil, fmt.Errorf("read an agent: %w", err)
		}
		agents = append(agents, a)
	}
	return agents, rows.Err()
}
