package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"potato/api/pyjson"
)

// decisionsRead is the last reading of the adjudicators' decisions. The newest decision on an item counts.
type decisionsRead struct {
	read  bool
	stamp os.FileInfo
	by    []map[int32][]string // scheme → item → labels
	err   error
}

func (d decisionsRead) of(q int) map[int32][]string {
	if q >= len(d.by) {
		return nil
	}
	return d.by[q]
}

// refresh reads the file when it has changed. It is read wherever it exists: a decision that was made counts, also after
// adjudication was switched off.
func (d decisionsRead) refresh(ctx context.Context, cfg *Config, items *itemIndex, questions []*question, sameItems bool) (decisionsRead, bool, error) {
	path := decisionsPath(cfg)
	info, err := statIfThere(path)
	if err != nil {
		now := decisionsRead{read: true, err: err}
		if sameItems {
			now.by = d.by
		}
		return now, true, nil
	}
	if sameItems && d.read && (info == nil && d.stamp == nil || unchanged(d.stamp, info)) {
		return d, false, nil
	}
	now := decisionsRead{read: true, stamp: info}
	if info == nil {
		return now, true, nil
	}
	wait := stateRetryWait
	for try := 0; ; try++ {
		now.by, now.err = readDecisions(path, items, questions)
		if now.err == nil || !mayPass(now.err, info) || try == stateRetries {
			break
		}
		select {
		case <-ctx.Done():
			return d, false, ctx.Err()
		case <-time.After(wait):
			wait *= 2
		}
	}
	if now.err != nil && sameItems {
		now.by = d.by
	}
	return now, true, nil
}

func (d decisionsRead) warnings() []string {
	if d.err == nil {
		return nil
	}
	instead := "the adjudicators' decisions are missing"
	if d.by != nil {
		instead = "the decisions of its last good reading are used"
	}
	return []string{fmt.Sprintf("decisions.json cannot be read (%s): %s", stateTrouble(d.err), instead)}
}

func readDecisions(path string, items *itemIndex, questions []*question) ([]map[int32][]string, error) {
	in, err := openSaved(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	p := &stateParser{d: pyjson.NewDecoder(in)}
	by := make([]map[int32][]string, len(questions))
	for i := range by {
		by[i] = map[int32][]string{}
	}
	newest := map[int32]string{}
	one := func() error {
		v, err := p.d.Read()
		if err != nil {
			return err
		}
		id, _ := v.Get("instance_id")
		it, known := items.find([]byte(id.Str()))
		if !known {
			return nil
		}
		// Times are ISO 8601 of one program, and sort as text; without them the later in the file counts.
		at, _ := v.Get("timestamp")
		if when := at.Str(); when < newest[it] {
			return nil
		} else {
			newest[it] = when
		}
		labels, _ := v.Get("label_decisions")
		for i, q := range questions {
			if l, ok := labels.Get(q.Name); ok {
				if chosen := q.decided(l); len(chosen) > 0 {
					by[i][it] = chosen
				}
			}
		}
		return nil
	}
	err = p.object(func(name []byte) error {
		if string(name) == "decisions" {
			return p.array(one)
		}
		return p.d.Skip()
	})
	if err != nil {
		return nil, err
	}
	if more, err := p.d.More(); err != nil || more {
		return nil, errors.Join(err, p.d.Errorf("something follows the decisions"))
	}
	return by, nil
}
