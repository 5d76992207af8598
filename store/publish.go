package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"potato/api"
)

// publishRows is how many rows of a publication are written, or removed, between two turns of other writers: some
// hundredths of a second.
const publishRows = 2000

// PublishPredictions makes the run's predictions that show lets pass the ones that items show, in place of whatever was
// published for those schemes. The rows are written in many transactions, of which nobody sees anything; the last one shows
// them all at once (T55). What a crash leaves half-written is shown by nothing and removed by whoever publishes next.
func (d *DB) PublishPredictions(ctx context.Context, id api.RunID, schemas []string, show func(Candidate) bool) error {
	d.publishMu.Lock()
	defer d.publishMu.Unlock()
	if err := d.removeUnshown(ctx); err != nil {
		return err
	}
	p, err := d.newPublications(ctx, id, schemas)
	if err != nil {
		return err
	}
	err = d.eachCandidate(ctx, id, func(c Candidate, payload string) error {
		if !show(c) {
			return nil
		}
		return p.add(c, payload)
	})
	if err == nil {
		err = p.write()
	}
	if err == nil {
		err = p.show(id)
	}
	if err != nil {
		return fmt.Errorf("publish predictions of run %s: %w", id, err)
	}
	return d.removeUnshown(ctx)
}

// publications are those of a run that are being written, one for each scheme.
type publications struct {
	d    *DB
	ctx  context.Context // lives as long as one call of the store
	of   map[string]*publication
	rows []any // of the next transaction
}

type publication struct {
	number int64
	n      int // its rows
}

const publishedColumns = 4

func (d *DB) newPublications(ctx context.Context, id api.RunID, schemas []string) (*publications, error) {
	p := &publications{d: d, ctx: ctx, of: map[string]*publication{}}
	err := d.change(ctx, func(tx *sql.Tx) error {
		for _, schema := range schemas {
			var number int64
			if err := tx.QueryRowContext(ctx, `INSERT INTO publications (run_id, schema_name, published_at) VALUES (?, ?, ?)
				RETURNING publication`, id, schema, d.seconds()).Scan(&number); err != nil {
				return fmt.Errorf("publish predictions of run %s: %w", id, err)
			}
			p.of[schema] = &publication{number: number}
		}
		return nil
	})
	return p, err
}

func (p *publications) add(c Candidate, payload string) error {
	to := p.of[c.SchemaName]
	if to == nil {
		return fmt.Errorf("a prediction for %q, which is not published", c.SchemaName)
	}
	to.n++
	p.rows = append(p.rows, to.number, c.InstanceID, payload, c.Confidence)
	if len(p.rows) < publishRows*publishedColumns {
		return nil
	}
	return p.write()
}

// write writes the rows that were collected. They are collected outside of the transaction: to read them takes as long.
func (p *publications) write() error {
	err := p.d.change(p.ctx, func(tx *sql.Tx) error {
		b := newBulk(p.ctx, tx, "INSERT INTO published (publication, instance_id, payload, confidence) VALUES ", publishedColumns)
		for row := range slices.Chunk(p.rows, publishedColumns) {
			if err := b.add(row...); err != nil {
				return err
			}
		}
		return b.flush()
	})
	p.rows = p.rows[:0]
	return err
}

// show makes items show the publications, and nothing for a scheme for which there are no rows.
func (p *publications) show(id api.RunID) error {
	return p.d.change(p.ctx, func(tx *sql.Tx) error {
		var there bool
		err := tx.QueryRowContext(p.ctx, `SELECT n_predictions IS NOT NULL FROM runs WHERE run_id = ?`, id).Scan(&there)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !there {
			return notFound(id) // it was deleted, or emptied, while its predictions were read
		}
		if err != nil {
			return err
		}
		for schema, of := range p.of {
			if _, err := tx.ExecContext(p.ctx, `DELETE FROM shown WHERE schema_name = ?`, schema); err != nil {
				return err
			}
			if of.n == 0 {
				continue
			}
			if _, err := tx.ExecContext(p.ctx, `INSERT INTO shown (schema_name, publication, n) VALUES (?, ?, ?)`, schema, of.number, of.n); err != nil {
				return err
			}
		}
		return countPublished(p.ctx, tx, id)
	})
}

// countPublished keeps with the runs how many of their predictions items show. It looks at those that showed some, and at id.
func countPublished(ctx context.Context, tx *sql.Tx, id api.RunID) error {
	_, err := tx.ExecContext(ctx, `UPDATE runs SET n_published = (SELECT coalesce(sum(s.n), 0) FROM shown s JOIN publications p USING (publication)
		WHERE p.run_id = runs.run_id) WHERE n_published > 0 OR run_id = ?`, id)
	if err != nil {
		return fmt.Errorf("count published predictions: %w", err)
	}
	return nil
}

// RetractPredictions takes a run's predictions off the items that show them and says how many items that were. The run
// keeps them.
func (d *DB) RetractPredictions(ctx context.Context, id api.RunID) (int, error) {
	n := 0
	err := d.change(ctx, func(tx *sql.Tx) (err error) {
		if n, err = retract(ctx, tx, id); err != nil {
			return err
		}
		return countPublished(ctx, tx, id)
	})
	if err != nil {
		return 0, err
	}
	return n, d.tidyPublications(ctx)
}

// retract makes no item show the run's predictions.
func retract(ctx context.Context, tx *sql.Tx, id api.RunID) (n int, err error) {
	const ofRun = `publication IN (SELECT publication FROM publications WHERE run_id = ?)`
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(n), 0) FROM shown WHERE `+ofRun, id).Scan(&n); err != nil {
		return 0, fmt.Errorf("retract predictions of run %s: %w", id, err)
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM shown WHERE `+ofRun, id); err != nil {
		return 0, fmt.Errorf("retract predictions of run %s: %w", id, err)
	}
	return n, nil
}

// tidyPublications removes what no item shows any more, unless somebody publishes, who will.
func (d *DB) tidyPublications(ctx context.Context) error {
	if !d.publishMu.TryLock() {
		return nil
	}
	defer d.publishMu.Unlock()
	return d.removeUnshown(ctx)
}

// removeUnshown removes the publications that no item shows: replaced, retracted, or never finished.
func (d *DB) removeUnshown(ctx context.Context) error {
	for more := true; more; {
		err := d.change(ctx, func(tx *sql.Tx) error {
			var number int64
			err := tx.QueryRowContext(ctx, `SELECT publication FROM publications WHERE publication NOT IN (SELECT publication FROM shown) LIMIT 1`).Scan(&number)
			if more = !errors.Is(err, sql.ErrNoRows); !more {
				return nil
			}
			if err != nil {
				return err
			}
			return removePublished(ctx, tx, number)
		})
		if err != nil {
			return fmt.Errorf("remove predictions that no item shows: %w", err)
		}
	}
	return nil
}

// removePublished removes the first rows of a publication, and the publication with its last rows.
func removePublished(ctx context.Context, tx *sql.Tx, number int64) error {
	var next string
	err := tx.QueryRowContext(ctx, `SELECT instance_id FROM published WHERE publication = ? ORDER BY instance_id LIMIT 1 OFFSET ?`, number, publishRows).Scan(&next)
	switch {
	case err == nil:
		_, err = tx.ExecContext(ctx, `DELETE FROM published WHERE publication = ? AND instance_id < ?`, number, next)
	case errors.Is(err, sql.ErrNoRows):
		if _, err = tx.ExecContext(ctx, `DELETE FROM published WHERE publication = ?`, number); err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM publications WHERE publication = ?`, number)
		}
	}
	return err
}
