package project

import (
	"errors"
	"io"
	"strings"

	"potato/api"
	"potato/api/pyjson"
)

// idWriter collects ids in few large strings instead of a million small ones.
type idWriter struct {
	part  *filePart
	chunk strings.Builder
	from  []int // where each id of the chunk begins; they belong to the last items of part
}

const idChunk = 64 << 10

func (w *idWriter) add(id string, it item) {
	if w.chunk.Cap() == 0 {
		w.chunk.Grow(idChunk)
	}
	w.from = append(w.from, w.chunk.Len())
	w.chunk.WriteString(id)
	w.part.items = append(w.part.items, it)
	if w.chunk.Len() > idChunk-1024 {
		w.flush()
	}
}

func (w *idWriter) flush() {
	ids, items := w.chunk.String(), w.part.items[len(w.part.items)-len(w.from):]
	for i, from := range w.from {
		to := len(ids)
		if i+1 < len(w.from) {
			to = w.from[i+1]
		}
		items[i].id = ids[from:to]
	}
	w.chunk, w.from = strings.Builder{}, w.from[:0]
}

// indexJSON reads a file that is one array, one object, or objects and arrays one after another.
func (f *dataFile) indexJSON(p *filePart, r io.Reader, from int64) error {
	d := pyjson.NewDecoder(r)
	w := &idWriter{part: p}
	defer w.flush()
	for {
		more, err := d.More()
		if err != nil {
			return f.jsonProblem(err, d.Line())
		}
		if !more {
			return nil
		}
		kind, err := d.Peek()
		if err != nil {
			return f.jsonProblem(err, d.Line())
		}
		if kind != pyjson.Array {
			if err := f.indexObject(w, d, from, 0); err != nil {
				return err
			}
			continue
		}
		if err := d.EnterArray(); err != nil {
			return f.jsonProblem(err, d.Line())
		}
		for {
			more, err := d.NextElement()
			if err != nil {
				return f.jsonProblem(err, d.Line())
			}
			if !more {
				break
			}
			if err := f.indexObject(w, d, from, 0); err != nil {
				return err
			}
		}
	}
}

// indexJSONLines reads a file with one object a line.
func (f *dataFile) indexJSONLines(p *filePart, r io.Reader, from int64) error {
	s := &recordScanner{r: r}
	d := pyjson.NewBytes(nil)
	w := &idWriter{part: p}
	defer w.flush()
	for {
		rec, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.tableProblem(err, s)
		}
		d.Reset(rec.bytes)
		if more, err := d.More(); err == nil && !more {
			continue
		}
		if err := f.indexObject(w, d, from+rec.off, rec.line-1); err != nil {
			return err
		}
		if more, err := d.More(); err != nil || more {
			return f.problem(rec.line, "something follows the item's JSON object").WithHint("each line of a .jsonl file is one object")
		}
	}
}

// indexObject reads the item that comes next: its place, its id and whether it has a text. Lines are counted from above.
func (f *dataFile) indexObject(w *idWriter, d *pyjson.Decoder, from int64, above int) error {
	kind, err := d.Peek()
	if err != nil {
		return f.jsonProblem(err, above+d.Line())
	}
	if kind != pyjson.Object {
		return f.problem(above+d.Line(), "an item that is no JSON object").WithHint("each item is an object with the fields %q and %q", f.idKey, f.textKey)
	}
	it := item{off: from + d.Offset()}
	if err := d.EnterObject(); err != nil {
		return f.jsonProblem(err, above+d.Line())
	}
	id, hasID, hasText := "", false, false
	for {
		name, more, err := d.NextMember()
		if err != nil {
			return f.jsonProblem(err, above+d.Line())
		}
		if !more {
			break
		}
		isID, isText := string(name) == f.idKey, string(name) == f.textKey
		hasText = hasText || isText
		if !isID {
			if err := d.Skip(); err != nil {
				return f.jsonProblem(err, above+d.Line())
			}
			continue
		}
		v, err := d.Read()
		if err != nil {
			return f.jsonProblem(err, above+d.Line())
		}
		id, hasID = v.Str(), !v.IsNull()
	}
	if !hasID || strings.TrimSpace(id) == "" {
		return f.withoutID(f.lineAt(it.off))
	}
	if !hasText {
		w.part.missingText(f, it.off)
	}
	it.n = uint32(from + d.Offset() - it.off)
	w.add(id, it)
	return nil
}

func (p *filePart) missingText(f *dataFile, off int64) {
	if p.withoutText++; p.withoutText == 1 {
		p.firstWithoutText = f.lineAt(off)
	}
}

func (f *dataFile) withoutID(line int) error {
	return f.problem(line, "an item whose field %q is missing or empty", f.idKey).
		WithHint("give every item an id, or set item_properties.id_key to the field that holds it")
}

// jsonProblem turns a syntax error into a sentence with the line; any other error stays what it is.
func (f *dataFile) jsonProblem(err error, line int) error {
	var syntax *pyjson.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return f.problem(line, "this is no JSON: %s", syntax.Msg).WithHint("mend the line; `python3 -m json.tool` finds such places too")
	case errors.Is(err, pyjson.ErrTruncated):
		return f.problem(line, "the file ends in the middle of an item").WithHint("the file was cut off; write it again")
	}
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return f.cannotRead(err)
}
