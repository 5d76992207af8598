package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
)

// bulkRows is how many rows go into one INSERT. With one row each, database/sql and not SQLite is what costs.
const bulkRows = 100

// bulk inserts rows a hundred at a time inside a transaction. Their first columns are the same in all of them: those are
// bound once a statement, which is what a row of few columns costs.
type bulk struct {
	ctx     context.Context // lives as long as one call of the store
	tx      *sql.Tx
	head    string
	same    int       // how many columns are the same
	columns int       // how many are a row's own
	stmt    *sql.Stmt // for a full hundred
	args    []any
}

// newBulk takes a statement up to and with VALUES.
func newBulk(ctx context.Context, tx *sql.Tx, head string, columns int, same ...any) *bulk {
	b := &bulk{ctx: ctx, tx: tx, head: head, same: len(same), columns: columns}
	b.args = append(make([]any, 0, b.size()), same...)
	return b
}

// size is how many values a full statement binds.
func (b *bulk) size() int { return b.same + bulkRows*b.columns }

func (b *bulk) add(row ...any) error {
	b.args = append(b.args, row...)
	if len(b.args) < b.size() {
		return nil
	}
	err := b.full(b.args)
	b.args = b.args[:b.same]
	return err
}

// full inserts exactly a hundred rows, whose values follow those that are the same in all.
func (b *bulk) full(args []any) error {
	if b.stmt == nil {
		var err error
		if b.stmt, err = b.tx.PrepareContext(b.ctx, b.head+values(bulkRows, b.same, b.columns)); err != nil {
			return err
		}
	}
	_, err := b.stmt.ExecContext(b.ctx, args...)
	return err
}

// flush inserts what is left. The bulk is used up.
func (b *bulk) flush() error {
	var err error
	if rows := (len(b.args) - b.same) / b.columns; rows > 0 {
		_, err = b.tx.ExecContext(b.ctx, b.head+values(rows, b.same, b.columns), b.args...)
	}
	if b.stmt != nil {
		err = errors.Join(err, b.stmt.Close())
	}
	return err
}

// values names the places that rows have in common by number: (?1,?,?),(?1,?,?) for two rows whose first column is the
// same. The others stay without: the driver looks a number up among all arguments.
func values(rows, same, columns int) string {
	row := "("
	for i := range same {
		row += "?" + strconv.Itoa(i+1) + ","
	}
	row += strings.TrimSuffix(strings.Repeat("?,", columns), ",") + "),"
	return strings.TrimSuffix(strings.Repeat(row, rows), ",")
}
