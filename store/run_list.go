package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"potato/api"
)

// RunFilter selects and orders runs. The zero value is the newest page of all.
type RunFilter struct {
	Status  []api.RunStatus
	Trainer string
	Backend string
	Q       string // part of the id, trainer, scheme, backend, host, who started it, or the error
	Sort    string // one of RunSorts, descending with a minus before it; absent: -created_at
	Cursor  string // Next of the page before
	Limit   int    // absent: 50; at most 500
}

// sorts maps a sort's name to what SQL orders by. None is ever NULL: a page must know where the one before it ended.
var sorts = map[string]string{
	"created_at":    "created_at",
	"started_at":    "coalesce(started_at, 0)",
	"finished_at":   "coalesce(finished_at, 0)",
	"duration":      "coalesce(finished_at - started_at, 0)",
	"status":        "status",
	"trainer":       "trainer",
	"backend":       "backend",
	"n_train":       "n_train",
	"val_accuracy":  "coalesce(json_extract(metrics, '$.val_accuracy'), -1)",
	"val_macro_f1":  "coalesce(json_extract(metrics, '$.val_macro_f1'), -1)",
	"test_accuracy": "coalesce(json_extract(metrics, '$.test_accuracy'), -1)",
	"test_macro_f1": "coalesce(json_extract(metrics, '$.test_macro_f1'), -1)",
}

// RunSorts are the names that RunFilter.Sort takes.
func RunSorts() []string { return slices.Sorted(maps.Keys(sorts)) }

// Runs reads a page of runs and the cursor of the next, which is empty on the last page.
func (d *DB) Runs(ctx context.Context, f RunFilter) ([]Run, string, error) {
	by, descending := strings.CutPrefix(f.Sort, "-")
	if f.Sort == "" {
		by, descending = "created_at", true
	}
	key, ok := sorts[by]
	if !ok {
		return nil, "", api.Invalidf("bad_sort", "runs cannot be sorted by %q", by).
			WithProblems(api.Problem{Path: "query.sort", Message: "one of " + strings.Join(RunSorts(), ", ")})
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, 500)
	where, args := f.where()
	order, than := "ASC", ">"
	if descending {
		order, than = "DESC", "<"
	}
	if f.Cursor != "" {
		c, err := parseCursor(f.Cursor, f.Sort)
		if err != nil {
			return nil, "", err
		}
		where = append(where, fmt.Sprintf("(%s, seq) %s (?, ?)", key, than))
		args = append(args, c.Key, c.Seq)
	}
	// The page is found first and read then: sorting whole rows would move all their JSON about.
	page := `SELECT seq FROM runs`
	if len(where) > 0 {
		page += ` WHERE ` + strings.Join(where, " AND ")
	}
	by = fmt.Sprintf(" ORDER BY %s %s, seq %s", key, order, order)
	page += fmt.Sprintf("%s LIMIT %d", by, limit+1)
	// One look at the database for both questions: the last run of the page may be changed or deleted meanwhile.
	tx, err := d.r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // it has only read
	rows, err := tx.QueryContext(ctx, `SELECT `+runColumns+` FROM runs WHERE seq IN (`+page+`)`+by, args...)
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	runs, err := readRuns(rows)
	if err != nil || len(runs) <= limit {
		return runs, "", err
	}
	runs = runs[:limit]
	last := runs[limit-1]
	c := runCursor{Sort: f.Sort, Seq: last.Seq}
	if err := tx.QueryRowContext(ctx, `SELECT `+key+` FROM runs WHERE seq = ?`, last.Seq).Scan(&c.Key); err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	next, err := c.text()
	return runs, next, err
}

func (f RunFilter) where() (where []string, args []any) {
	if len(f.Status) > 0 {
		w, a := inList("status", f.Status)
		where, args = append(where, w), append(args, a...)
	}
	if f.Trainer != "" {
		where, args = append(where, "trainer = ?"), append(args, f.Trainer)
	}
	if f.Backend != "" {
		where, args = append(where, "backend = ?"), append(args, f.Backend)
	}
	if f.Q != "" {
		columns := []string{"run_id", "trainer", "schema_names", "backend", "host", "created_by", "error", "error_code"}
		for i, c := range columns {
			columns[i] = c + ` LIKE ? ESCAPE '\'`
			args = append(args, contains(f.Q))
		}
		where = append(where, "("+strings.Join(columns, " OR ")+")")
	}
	return where, args
}

// runCursor is the last run of a page. It carries its sort: continued under another one it would skip runs silently.
type runCursor struct {
	Sort string `json:"s"`
	Key  any    `json:"k"`
	Seq  int64  `json:"n"`
}

func (c runCursor) text() (string, error) {
	b, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(b), err
}

func parseCursor(text, sort string) (runCursor, error) {
	var c runCursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	switch c.Key.(type) {
	case string, float64:
	default:
		err = fmt.Errorf("key %T", c.Key)
	}
	if err != nil || c.Sort != sort {
		return c, badCursor(err)
	}
	return c, nil
}

func badCursor(cause error) *api.Error {
	return api.Invalidf("bad_cursor", "the cursor does not belong to this list").
		WithHint("ask for the first page again").WithCause(cause).
		WithProblems(api.Problem{Path: "query.cursor", Message: "take it from next of the page before, with the same sort and filters"})
}

// inList is a condition that a column holds one of the values.
func inList[T any](column string, values []T) (string, []any) {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return column + " IN (" + strings.TrimSuffix(strings.Repeat("?,", len(values)), ",") + ")", args
}

// contains is the LIKE pattern of texts that have part in them.
func contains(part string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(part) + "%"
}
