package project

import (
	"cmp"
	"slices"
)

// seed is a pre-label that the annotator was shown.
type seed struct {
	item   int32
	q      int32 // the scheme; -1 in changes: all
	answer int32
}

func (s seed) compare(o seed) int { return cmp.Or(cmp.Compare(s.item, o.item), cmp.Compare(s.q, o.q)) }

// behaviour reads which pre-labels the annotator was shown for an item and what was changed there.
func (p *stateParser) behaviour(id []byte) error {
	it, known := p.items.find(id)
	if !known {
		return p.d.Skip()
	}
	return p.object(func(name []byte) error {
		switch string(name) {
		case "pre_annotation_seeds":
			return p.object(func(scheme []byte) error {
				q, known := p.byName[string(scheme)]
				if !known {
					return p.d.Skip()
				}
				v, err := p.d.Read()
				if err != nil {
					return err
				}
				if labels := p.questions[q].decided(v); len(labels) > 0 {
					p.seeds = append(p.seeds, seed{it, int32(q), p.out.answers[q].add(labels)})
				}
				return nil
			})
		case "annotation_changes":
			return p.array(func() error {
				q := int32(-1)
				err := p.object(func(name []byte) error {
					if n := string(name); n != "schema" && n != "schema_name" {
						return p.d.Skip()
					}
					b, ok, err := p.text()
					if i, known := p.byName[string(b)]; ok && known {
						q = int32(i)
					} else if ok {
						q = int32(len(p.questions)) // another scheme's change
					}
					return err
				})
				p.changes = append(p.changes, seed{item: it, q: q})
				return err
			})
		default:
			return p.d.Skip()
		}
	})
}

// markPrelaid marks the answers that are the pre-label, by annotators who changed nothing.
func (p *stateParser) markPrelaid() {
	if len(p.seeds) == 0 {
		return
	}
	slices.SortStableFunc(p.seeds, seed.compare)
	slices.SortFunc(p.changes, seed.compare)
	for q, votes := range p.out.votes {
		for i, v := range votes {
			at, shown := slices.BinarySearchFunc(p.seeds, seed{item: v.item, q: int32(q)}, seed.compare)
			if !shown || p.seeds[at].answer != v.answer {
				continue
			}
			_, changed := slices.BinarySearchFunc(p.changes, seed{item: v.item, q: int32(q)}, seed.compare)
			_, changedAny := slices.BinarySearchFunc(p.changes, seed{item: v.item, q: -1}, seed.compare)
			votes[i].prelaid = !changed && !changedAny
		}
	}
}
