package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// bulkRows is how many rows go into one INSERT. With one row each, database/sql and not SQLite is what costs.
const bulkRows = 100

// bulk inserts rows a hundred at a time inside a transaction.
type bulk struct {
	ctx     context.Context // lives as long as one call of the store
	tx      *sql.Tx
	head    string
	columns int
	stmt    *sql.Stmt // for a full hundred
	args    []any
}

// newBulk takes a statement up to and with VALUES.
func newBulk(ctx context.Context, tx *sql.Tx, head string, columns int) *bulk {
	return &bulk{ctx: ctx, tx: tx, head: head, columns: columns, args: make([]any, 0, bulkRows*columns)}
}

func (b *bulk) add(row ...any) error {
	b.args = append(b.args, row...)
	if len(b.args) < bulkRows*b.columns {
		return nil
	}
	err := b.full(b.args)
	b.args = b.args[:0]
	return err
}

// full inserts exactly a hundred rows.
func (b *bulk) full(args []any) error {
	if b.stmt == nil {
		var err error
		if b.stmt, err = b.tx.PrepareContext(b.ctx, b.head+values(bulkRows, b.columns)); err != nil {
			return err
		}
	}
	_, err := b.stmt.ExecContext(b.ctx, args...)
	return err
}

// flush inserts what is left. The bulk is used up.
func (b *bulk) flush() error {
	var err error
	if len(b.args) > 0 {
		_, err = b.tx.ExecContext(b.ctx, b.head+values(len(b.args)/b.columns, b.columns), b.args...)
	}
	if b.stmt != nil {
		err = errors.Join(err, b.stmt.Close())
	}
	return err
}

func values(rows, columns int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", columns), ",") + "),"
	return strings.TrimSuffix(strings.Repeat(row, rows), ",")
}
