package project

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"

	"potato/api/pyjson"
)

// vote is one annotator's answer to one scheme for one item.
type vote struct {
	item    int32
	answer  int32 // place in the scheme's answers; -1: answered without naming a class
	prelaid bool  // a pre-label that was accepted untouched
}

// answers are the different answers to one scheme, each a list of labels.
type answers struct {
	labels [][]string
	byKey  map[string]int32
	key    []byte
}

// add returns the place of an answer.
func (a *answers) add(labels []string) int32 {
	a.key = a.key[:0]
	for _, l := range labels {
		a.key = append(append(a.key, l...), 0xFF) // no text holds this byte
	}
	if i, ok := a.byKey[string(a.key)]; ok {
		return i
	}
	if a.byKey == nil {
		a.byKey = map[string]int32{}
	}
	i := int32(len(a.labels))
	a.byKey[string(a.key)] = i
	a.labels = append(a.labels, slices.Clone(labels))
	return i
}

// clone is a copy that can grow by itself.
func (a answers) clone() answers {
	return answers{labels: slices.Clone(a.labels), byKey: maps.Clone(a.byKey)}
}

// annotator is what one state file says about the study's trainable schemes.
type annotator struct {
	dir     string // below output_annotation_dir
	user    string
	machine string // what kind of machine it says it is; empty for people
	strange int    // answered items that the data files do not have
	votes   [][]vote
	answers []answers
}

// stateParser reads one user_state.json without keeping it: such a file may hold a million items.
type stateParser struct {
	d         *pyjson.Decoder
	items     *itemIndex
	questions []*question
	byName    map[string]int
	out       *annotator
	seeds     []seed // in the order of the file
	changes   []seed // schemes whose answer the annotator changed
	pairs     [][]pair
}

func parseState(r io.Reader, dir string, items *itemIndex, questions []*question) (*annotator, error) {
	p := &stateParser{d: pyjson.NewDecoder(r), items: items, questions: questions, byName: map[string]int{},
		out:   &annotator{dir: dir, user: dir, votes: make([][]vote, len(questions)), answers: make([]answers, len(questions))},
		pairs: make([][]pair, len(questions))}
	for i, q := range questions {
		p.byName[q.Name] = i
	}
	if k, err := p.d.Peek(); err != nil || k != pyjson.Object {
		return nil, cmp.Or(err, errNoObject)
	}
	err := p.object(func(name []byte) error {
		switch string(name) {
		case "user_id":
			v, err := p.d.Read()
			if err == nil && v.Kind == pyjson.String && v.Text != "" {
				p.out.user = v.Text
			}
			return err
		case "origin":
			v, err := p.d.Read()
			if kind, ok := v.Get("kind"); ok && kind.Truthy() && kind.Str() != "human" {
				p.out.machine = kind.Str()
			}
			return err
		case "instance_id_to_label_to_value":
			return p.object(p.instance)
		case "instance_id_to_behavioral_data":
			return p.object(p.behaviour)
		default:
			return p.d.Skip()
		}
	})
	if err == nil {
		var more bool
		if more, err = p.d.More(); err == nil && more {
			err = p.d.Errorf("something follows the annotator's state")
		}
	}
	if err != nil {
		return nil, err
	}
	p.markPrelaid()
	return p.out, nil
}

// object calls member for each member of the next value; a value that is no object is passed over, whatever it is.
func (p *stateParser) object(member func(name []byte) error) error {
	k, err := p.d.Peek()
	if err != nil {
		return err
	}
	if k != pyjson.Object {
		return p.d.Skip()
	}
	return p.d.EachMember(member)
}

// array calls element for each element of the next value, as object does.
func (p *stateParser) array(element func() error) error {
	k, err := p.d.Peek()
	if err != nil {
		return err
	}
	if k != pyjson.Array {
		return p.d.Skip()
	}
	return p.d.EachElement(element)
}

// instance reads the answers for one item: a list of pairs, or, in older files, a map of schemes.
func (p *stateParser) instance(id []byte) error {
	it, known := p.items.find(id)
	if !known {
		p.out.strange++
		return p.d.Skip() // an item that is no longer in the data files
	}
	for i := range p.pairs {
		p.pairs[i] = p.pairs[i][:0]
	}
	k, err := p.d.Peek()
	if err != nil {
		return err
	}
	if k == pyjson.Object {
		err = p.object(p.oldScheme)
	} else {
		err = p.array(p.pair)
	}
	if err != nil {
		return err
	}
	for i, pairs := range p.pairs {
		if len(pairs) == 0 {
			continue
		}
		v := vote{item: it, answer: -1}
		if labels := p.questions[i].answer(pairs); len(labels) > 0 {
			v.answer = p.out.answers[i].add(labels)
		}
		p.out.votes[i] = append(p.out.votes[i], v)
	}
	return nil
}

// pair reads [{"schema": …, "name": …}, value].
func (p *stateParser) pair() error {
	q, name, n := -1, "", 0
	return p.array(func() error {
		n++
		switch {
		case n == 1:
			return p.object(func(member []byte) error {
				switch string(member) {
				case "schema":
					b, ok, err := p.text()
					if i, known := p.byName[string(b)]; err == nil && ok && known {
						q = i
					}
					return err
				case "name":
					b, _, err := p.text()
					name = string(b)
					return err
				default:
					return p.d.Skip()
				}
			})
		case n == 2 && q >= 0:
			v, err := p.d.Read()
			p.pairs[q] = append(p.pairs[q], pair{name, v})
			return err
		default:
			return p.d.Skip()
		}
	})
}

// text reads a string; any other value is passed over.
func (p *stateParser) text() ([]byte, bool, error) {
	k, err := p.d.Peek()
	if err != nil {
		return nil, false, err
	}
	if k != pyjson.String {
		return nil, false, p.d.Skip()
	}
	b, err := p.d.ReadStringBytes()
	return b, err == nil, err
}

// oldScheme reads scheme: {name: value}.
func (p *stateParser) oldScheme(scheme []byte) error {
	q, known := p.byName[string(scheme)]
	if !known {
		return p.d.Skip()
	}
	v, err := p.d.Read()
	if err != nil {
		return err
	}
	if v.Kind != pyjson.Object {
		text := v.Str()
		v = pyjson.Value{Members: []pyjson.Member{{Name: text, Value: pyjson.Value{Kind: pyjson.String, Text: text}}}}
	}
	for _, m := range v.Members {
		p.pairs[q] = append(p.pairs[q], pair{m.Name, m.Value})
	}
	return nil
}

// halfWritten reports whether an error may go away when the file is read again.
func halfWritten(err error) bool {
	var syntax *pyjson.SyntaxError
	return errors.Is(err, pyjson.ErrTruncated) || errors.As(err, &syntax) || errors.Is(err, errStateChanged)
}
