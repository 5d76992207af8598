package project

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"potato/api"
	"potato/api/pyjson"
)

// Bundle is a bundle on disk.
type Bundle struct {
	Dir      string
	Manifest api.Manifest
}

// OpenBundle reads the manifest of a bundle that BuildBundle has written.
func OpenBundle(dir string) (*Bundle, error) {
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return nil, fmt.Errorf("read the bundle's manifest: %w", err)
	}
	b := &Bundle{Dir: dir}
	if err := json.Unmarshal(text, &b.Manifest); err != nil {
		return nil, api.Invalidf("bad_bundle", "the bundle's manifest is no JSON").
			WithHint("start the run again: it writes a new bundle").WithCause(err)
	}
	return b, nil
}

var splitOrder = []string{api.SplitTrain, api.SplitVal, api.SplitTest, api.SplitUnlabeled}

// splits lists the manifest's splits: train first, unlabelled last.
func (b *Bundle) splits() []string {
	return slices.SortedFunc(maps.Keys(b.Manifest.Splits), func(x, y string) int {
		return cmp.Or(cmp.Compare(slices.Index(splitOrder, api.SplitRole(x)), slices.Index(splitOrder, api.SplitRole(y))), cmp.Compare(x, y))
	})
}

// Items hands over the items of the bundle, without holding them: train first, then what is held out, then the
// unlabelled. Training items come without text and targets.
func (b *Bundle) Items() iter.Seq2[api.BundleItem, error] {
	return func(yield func(api.BundleItem, error) bool) {
		for _, name := range b.splits() {
			for item, err := range b.rows(name) {
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}

// HeldOut hands over the items that a run is scored on.
func (b *Bundle) HeldOut() iter.Seq2[api.BundleItem, error] {
	return func(yield func(api.BundleItem, error) bool) {
		for _, name := range b.splits() {
			if role := api.SplitRole(name); role != api.SplitVal && role != api.SplitTest {
				continue
			}
			for item, err := range b.rows(name) {
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}

// rows reads one file of the bundle.
func (b *Bundle) rows(split string) iter.Seq2[api.BundleItem, error] {
	return func(yield func(api.BundleItem, error) bool) {
		f, err := os.Open(filepath.Join(b.Dir, filepath.Base(b.Manifest.Splits[split].Path)))
		if err != nil {
			yield(api.BundleItem{}, fmt.Errorf("read the bundle: %w", err))
			return
		}
		defer func() { _ = f.Close() }()
		d := pyjson.NewDecoder(bufio.NewReaderSize(f, 64<<10))
		role := api.SplitRole(split)
		for {
			more, err := d.More()
			if err == nil && !more {
				return
			}
			var item api.BundleItem
			if err == nil {
				item, err = readRow(d, role)
			}
			if err != nil {
				err = badRow(split, err)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

func badRow(split string, err error) error {
	var syntax *pyjson.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, pyjson.ErrTruncated) || errors.Is(err, io.ErrUnexpectedEOF) {
		return api.Invalidf("bad_bundle", "%s.jsonl of the bundle is damaged: %s", split, err).
			WithHint("start the run again: it writes a new bundle")
	}
	return fmt.Errorf("read the bundle: %w", err)
}

func readRow(d *pyjson.Decoder, role string) (api.BundleItem, error) {
	item := api.BundleItem{Split: role}
	err := d.EachMember(func(name []byte) (err error) {
		switch n := string(name); {
		case n == "instance_id":
			item.InstanceID, err = d.ReadString()
		case n == "text" && role != api.SplitTrain:
			item.Text, err = d.ReadString()
		case n == "targets" && role != api.SplitTrain:
			item.Targets, err = readTargets(d)
		default:
			err = d.Skip()
		}
		return err
	})
	return item, err
}

func readTargets(d *pyjson.Decoder) (map[string][]string, error) {
	v, err := d.Read()
	if err != nil {
		return nil, err
	}
	out := make(map[string][]string, len(v.Members))
	for _, m := range v.Members {
		if m.Value.Kind != pyjson.Array {
			out[m.Name] = []string{m.Value.Str()}
			continue
		}
		labels := []string{}
		for _, e := range m.Value.Elements {
			labels = append(labels, e.Str())
		}
		out[m.Name] = labels
	}
	return out, nil
}
