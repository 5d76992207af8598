package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"potato/api"
)

// FileName is the database's name below the training folder.
const FileName = "training.sqlite"

//go:embed migrations/*.sql
var migrations embed.FS

// DB is the open database. It is safe for concurrent use.
type DB struct {
	w, r   *sql.DB // one writing connection; several that only read
	path   string
	opened fs.FileInfo // the file that path named then
	now    func() time.Time

	publishMu sync.Mutex // held by whoever writes or removes published rows

	totalsMu sync.Mutex
	totals   map[totalKey]int     // predictions that match a filter: those of a run never change
	searches map[totalKey][]int32 // and which those of a search are
}

// Open opens the database below dir, makes it when it is missing and brings it up to date. It does not take the lock of
// the folder: commands may read while a server runs.
func Open(ctx context.Context, dir string, now func() time.Time) (*DB, error) {
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	if kind := networkFileSystem(dir); kind != "" {
		return nil, api.Invalidf("network_file_system",
			"%s is on a network file system (%s), where SQLite databases break", dir, kind).
			WithHint("set model_training.training_dir to a folder on a local disk")
	}
	path := filepath.Join(dir, FileName)
	opened, err := createPrivate(path)
	if err != nil {
		return nil, err
	}
	d := &DB{path: path, opened: opened, now: now, totals: map[totalKey]int{}, searches: map[totalKey][]int32{}}
	if d.w, err = sql.Open("sqlite", dsn(path, "_txlock=immediate", "_pragma=journal_mode(WAL)",
		"_pragma=synchronous(NORMAL)", "_pragma=foreign_keys(1)", "_pragma=cache_size(-16000)")); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d.w.SetMaxOpenConns(1)
	if err := d.migrate(ctx); err != nil {
		return nil, errors.Join(err, d.w.Close())
	}
	if d.r, err = sql.Open("sqlite", dsn(path, "mode=ro", "_pragma=query_only(1)")); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), d.w.Close())
	}
	d.r.SetMaxOpenConns(4)
	d.r.SetMaxIdleConns(4)
	return d, nil
}

// makeFolder makes the training folder, or says why it cannot be one.
func makeFolder(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	switch {
	case err == nil:
		return nil
	case api.IsDiskFull(err):
		return DiskFull(err)
	default:
		return api.Unavailablef("training_dir", "the training folder cannot be made: %v", err).
			WithHint("give the server's account write access there, or name another folder with model_training.training_dir").WithCause(err)
	}
}

// createPrivate makes the file before SQLite does, which would leave it readable by everyone. SQLite gives its -wal and
// -shm files the mode of the database.
func createPrivate(path string) (fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, cannotOpen("the training database", err)
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}

// cannotOpen says why a file of the training folder cannot be opened.
func cannotOpen(what string, err error) error {
	if api.IsDiskFull(err) {
		return DiskFull(err)
	}
	return api.Unavailablef("training_dir", "%s cannot be opened: %v", what, err).
		WithHint("give the server's account the right to read and write it, or move away what is not a file").WithCause(err)
}

// dsn builds the driver's address. busy_timeout stands first: the pragmas after it may have to wait for a lock.
func dsn(path string, settings ...string) string {
	s := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=busy_timeout(10000)"
	for _, v := range settings {
		s += "&" + v
	}
	return s
}

func (d *DB) migrate(ctx context.Context) error {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, d.w, sub)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	is, knows, err := p.GetVersions(ctx)
	if err != nil {
		return openError(d.path, fmt.Errorf("read the version of %s: %w", d.path, err))
	}
	if is > knows {
		return api.Conflictf("database_newer", "the training database %s was written by a newer version of this program", d.path).
			WithHint("start the newer version, or name another folder with model_training.training_dir")
	}
	if _, err := p.Up(ctx); err != nil {
		return openError(d.path, fmt.Errorf("bring %s up to date: %w", d.path, err))
	}
	return nil
}

// Close closes the database. Calls under way finish first.
func (d *DB) Close() error {
	return errors.Join(d.r.Close(), d.w.Close())
}

// change runs fn in one transaction of the writer, begun with BEGIN IMMEDIATE so that it never has to be upgraded.
func (d *DB) change(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if err := d.Gone(); err != nil {
		return err
	}
	tx, err := d.w.BeginTx(ctx, nil)
	if err != nil {
		return writeError(fmt.Errorf("begin: %w", err))
	}
	if err := fn(tx); err != nil {
		return writeError(errors.Join(err, ignoreDone(tx.Rollback())))
	}
	if err := tx.Commit(); err != nil {
		return writeError(fmt.Errorf("commit: %w", err))
	}
	return nil
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// seconds is the present as the database and the API write it.
func (d *DB) seconds() float64 { return float64(d.now().UnixMilli()) / 1000 }
