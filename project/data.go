package project

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"potato/api"
)

// item is where one item of the study lies. A million of them are in memory at once, so that its text is not: it is read
// again when a bundle is written.
type item struct {
	id   string
	off  int64
	n    uint32
	file uint32
}

// itemIndex lists the study's items, sorted by id as text, which is the order of a bundle's rows.
type itemIndex struct {
	files    []*dataFile
	items    []item
	warnings []string
	table    []int32 // open addressing: place in items plus one
	seed     maphash.Seed

	mu      sync.Mutex
	users   int // bundles being written
	retired bool
}

func badData(format string, args ...any) *api.Error {
	return api.Invalidf("bad_data", format, args...)
}

// readItems indexes all data files, several at a time.
func readItems(ctx context.Context, files []*dataFile) (*itemIndex, error) {
	parts := make([]*filePart, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(runtime.GOMAXPROCS(0), 1))
	for i, f := range files {
		g.Go(func() (err error) {
			parts[i], err = f.index(ctx)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	ix := &itemIndex{files: files, seed: maphash.MakeSeed()}
	if err := ix.merge(parts); err != nil {
		return nil, err
	}
	return ix, nil
}

// merge sorts the items of all files and refuses ids that come twice.
func (ix *itemIndex) merge(parts []*filePart) error {
	n, withoutText := 0, 0
	for _, p := range parts {
		n += len(p.items)
		withoutText += p.withoutText
		ix.warnings = append(ix.warnings, p.warnings...)
	}
	if n > 0 && withoutText == n {
		f, p := ix.files[0], parts[0]
		return badData("no item has the field %q that item_properties.text_key names, see %s line %d", f.textKey, f.name, p.firstWithoutText).
			WithHint("set item_properties.text_key to the field that holds the text")
	}
	ix.items = make([]item, 0, n)
	for i, p := range parts {
		if p.withoutText > 0 {
			ix.warnings = append(ix.warnings, fmt.Sprintf("%s: %d of %d items have no field %q, the first at line %d; their text is empty",
				ix.files[i].name, p.withoutText, len(p.items), ix.files[i].textKey, p.firstWithoutText))
		}
		for _, it := range p.items {
			it.file = uint32(i)
			ix.items = append(ix.items, it)
		}
		p.items = nil
	}
	slices.SortFunc(ix.items, func(a, b item) int {
		return cmp.Or(strings.Compare(a.id, b.id), cmp.Compare(a.file, b.file), cmp.Compare(a.off, b.off))
	})
	for i := 1; i < len(ix.items); i++ {
		if a, b := ix.items[i-1], ix.items[i]; a.id == b.id {
			return badData("two items have the id %q: %s and %s", a.id, ix.place(a), ix.place(b)).
				WithHint("give each item an id of its own over all data files; 1 and \"1\" are the same")
		}
	}
	ix.hash()
	return nil
}

// place says where an item is, for people: its line, and its number among the file's items, which may all be on one line.
func (ix *itemIndex) place(it item) string {
	f, n := ix.files[it.file], 0
	for _, other := range ix.items {
		if other.file == it.file && other.off <= it.off {
			n++
		}
	}
	return fmt.Sprintf("%s line %d (item %d)", f.name, f.lineAt(it.off), n)
}

// hash fills the table that finds an item by its id: a map would take five times the memory.
func (ix *itemIndex) hash() {
	size := 16
	for size < 2*len(ix.items) {
		size *= 2
	}
	ix.table = make([]int32, size)
	for i, it := range ix.items {
		at := maphash.String(ix.seed, it.id) & uint64(size-1)
		for ix.table[at] != 0 {
			at = (at + 1) & uint64(size-1)
		}
		ix.table[at] = int32(i) + 1
	}
}

// find is the place of an item in items.
func (ix *itemIndex) find(id []byte) (int32, bool) {
	mask := uint64(len(ix.table) - 1)
	for at := maphash.Bytes(ix.seed, id) & mask; ix.table[at] != 0; at = (at + 1) & mask {
		if i := ix.table[at] - 1; ix.items[i].id == string(id) {
			return i, true
		}
	}
	return 0, false
}

// use keeps the files readable until release, whatever replaces the index meanwhile.
func (ix *itemIndex) use() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.users++
}

func (ix *itemIndex) release() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.users--
	ix.close()
}

// retire gives the files up as soon as nobody uses them.
func (ix *itemIndex) retire() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.retired = true
	ix.close()
}

func (ix *itemIndex) close() {
	if ix.users > 0 || !ix.retired {
		return
	}
	for _, f := range ix.files {
		f.close()
	}
}

// dataFiles lists the study's data files in the config's order, then those of data_directory by name.
func (c *Config) dataFiles() ([]*dataFile, error) {
	var files []*dataFile
	add := func(path, name, encoding string) error {
		f, err := newDataFile(path, name, encoding, c.ItemProperties)
		if err == nil {
			files = append(files, f)
		}
		return err
	}
	for _, d := range c.DataFiles {
		if err := add(c.DataPath(d), d.Path, d.Encoding); err != nil {
			return nil, err
		}
	}
	if c.DataDirectory == "" {
		return files, nil
	}
	dir := c.resolve(c.TaskPath(), c.DataDirectory)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, badData("the data directory %s cannot be read", c.DataDirectory).
			WithHint("make the folder, or mend data_directory").WithCause(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, known := dataFormats[suffix(path)]; !known || e.IsDir() || slices.ContainsFunc(files, func(f *dataFile) bool { return f.path == path }) {
			continue
		}
		if err := add(path, filepath.Join(c.DataDirectory, e.Name()), ""); err != nil {
			return nil, err
		}
	}
	return files, nil
}
