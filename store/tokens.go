package store

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"

	"potato/api"
)

// Token is what is known of an agent backend's token: everything but the token.
type Token struct {
	SHA256      string // as hex
	Backend     string
	CreatedAt   float64
	FirstUsedAt *float64
	LastSeen    *float64
	ReplacedAt  *float64
}

const tokenColumns = `sha256, backend, created_at, first_used_at, last_seen, replaced_at`

func scanToken(row *sql.Row) (*Token, error) {
	var t Token
	err := row.Scan(&t.SHA256, &t.Backend, &t.CreatedAt, &t.FirstUsedAt, &t.LastSeen, &t.ReplacedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a token: %w", err)
	}
	return &t, nil
}

// IssueToken makes the hash the backend's token in place of the one before, which is refused from now on.
func (d *DB) IssueToken(ctx context.Context, backend, sha256 string) (Token, error) {
	t := Token{SHA256: sha256, Backend: backend, CreatedAt: d.seconds()}
	err := d.change(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE tokens SET replaced_at = ? WHERE backend = ? AND replaced_at IS NULL`, t.CreatedAt, backend); err != nil {
			return fmt.Errorf("replace the token of %s: %w", backend, err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO tokens (sha256, backend, created_at) VALUES (?,?,?)`, sha256, backend, t.CreatedAt); err != nil {
			return fmt.Errorf("store a token of %s: %w", backend, err)
		}
		return nil
	})
	return t, err
}

// TokenByHash finds a token that was issued, replaced ones too; nil when there is none. What the index's search could tell
// by its time is about hashes of random tokens, and of no use to anyone; the comparison itself tells nothing.
func (d *DB) TokenByHash(ctx context.Context, sha256 string) (*Token, error) {
	t, err := scanToken(d.r.QueryRowContext(ctx, `SELECT `+tokenColumns+` FROM tokens WHERE sha256 = ?`, sha256))
	if t != nil && subtle.ConstantTimeCompare([]byte(t.SHA256), []byte(sha256)) != 1 {
		return nil, nil
	}
	return t, err
}

// TokenOf reads the backend's valid token; nil when none was issued yet.
func (d *DB) TokenOf(ctx context.Context, backend string) (*Token, error) {
	return scanToken(d.r.QueryRowContext(ctx, `SELECT `+tokenColumns+` FROM tokens WHERE backend = ? AND replaced_at IS NULL`, backend))
}

// stillValid refuses a token that was replaced since it was looked at.
func stillValid(ctx context.Context, tx *sql.Tx, sha256 string) error {
	var valid bool
	err := tx.QueryRowContext(ctx, `SELECT replaced_at IS NULL FROM tokens WHERE sha256 = ?`, sha256).Scan(&valid)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read a token: %w", err)
	}
	if !valid {
		return TokenRevoked()
	}
	return nil
}

// TokenRevoked is the answer to a token that was replaced.
func TokenRevoked() *api.Error {
	return api.Unauthenticatedf("token_revoked", "This token was replaced by a newer one").
		WithHint("start the agent with the token that `potato training register` printed last")
}
