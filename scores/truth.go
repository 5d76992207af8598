package scores

import (
	"slices"
	"strconv"

	"potato/api"
)

// truth holds the held-out items, and counts predictions as they come.
type truth struct {
	rows    map[string]int32
	role    []uint8 // row → place in roles
	schemes []*scheme
	byName  map[string]*scheme
}

// scheme is what is known and counted of one scheme.
type scheme struct {
	api.Scheme
	labels []string // as numbers are given to them
	number map[string]int32
	target []int32 // row → label, or set of labels; -1: none; -2: predicted already
	sets   [][]int32
	setKey map[string]int32
	counts [2]counts
}

// done marks a target whose prediction has been counted.
const (
	none int32 = -1
	done int32 = -2
)

func newTruth(m api.Manifest) *truth {
	t := &truth{rows: map[string]int32{}, byName: map[string]*scheme{}}
	for _, x := range m.Schemas {
		s := &scheme{Scheme: x, number: map[string]int32{}, setKey: map[string]int32{}}
		for i := range s.counts {
			s.counts[i] = newCounts()
		}
		for _, l := range slices.Concat(x.Labels, m.Labels[x.Name]) {
			s.label(l)
		}
		t.schemes = append(t.schemes, s)
		t.byName[x.Name] = s
	}
	return t
}

// label gives a label its number.
func (s *scheme) label(l string) int32 {
	if n, ok := s.number[l]; ok {
		return n
	}
	n := int32(len(s.labels))
	s.number[l] = n
	s.labels = append(s.labels, l)
	return n
}

// set gives a set of labels its number.
func (s *scheme) set(labels []string) int32 {
	numbers := make([]int32, 0, len(labels))
	for _, l := range labels {
		numbers = append(numbers, s.label(l))
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var key []byte
	for _, n := range numbers {
		key = append(strconv.AppendInt(key, int64(n), 10), ' ')
	}
	if n, ok := s.setKey[string(key)]; ok {
		return n
	}
	n := int32(len(s.sets))
	s.setKey[string(key)] = n
	s.sets = append(s.sets, numbers)
	return n
}

func (s *scheme) many() bool { return s.Kind == api.KindMultilabel }

// answer is the number of an item's label or labels.
func (s *scheme) answer(labels []string) int32 {
	switch {
	case s.many():
		return s.set(labels)
	case len(labels) == 1:
		return s.label(labels[0])
	}
	return none
}

func (t *truth) add(item api.BundleItem) {
	role := slices.Index(roles, item.Split)
	if _, twice := t.rows[item.InstanceID]; twice || role < 0 {
		return
	}
	t.rows[item.InstanceID] = int32(len(t.role))
	t.role = append(t.role, uint8(role))
	for _, s := range t.schemes {
		labels, labelled := item.Targets[s.Name]
		answer := none
		if labelled {
			answer = s.answer(labels)
		}
		s.target = append(s.target, answer)
		if answer != none {
			s.counts[role].items++
			s.counts[role].support[answer]++
		}
	}
}

func (t *truth) predict(p api.Prediction) {
	s := t.byName[p.SchemaName]
	row, heldOut := t.rows[p.InstanceID]
	if s == nil || !heldOut || s.target[row] < 0 {
		return
	}
	target := s.target[row]
	s.target[row] = done
	c := &s.counts[t.role[row]]
	if s.many() {
		predicted := s.set(p.Payload.Labels)
		c.pairs[[2]int32{target, predicted}]++
		c.judgeLabels(s, s.sets[target], s.sets[predicted], p.Payload.Scores)
		return
	}
	predicted := s.label(p.Payload.Label)
	c.pairs[[2]int32{target, predicted}]++
	c.judge(topProbability(p), target == predicted)
}

// topProbability is the probability of the predicted label, or nil.
func topProbability(p api.Prediction) *float64 {
	switch score, scored := p.Payload.Scores[p.Payload.Label]; {
	case p.Payload.Confidence != nil:
		return p.Payload.Confidence
	case p.Confidence != nil:
		return p.Confidence
	case scored:
		return &score
	}
	return nil
}
