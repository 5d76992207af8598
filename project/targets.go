package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Ways of turning several annotators' answers into one.
const (
	aggregateConsensus = "consensus"
	aggregateMajority  = "majority"
)

// targets are what is trained on: one answer for each item of the study, or none.
type targets struct {
	q        *question
	answers  answers
	of       []int32 // place in answers; -1: no target
	answered []bool
	labelled int
	agreed   int // of them, items with one answer, or with one that has more votes than any other
	voters   int
	left     leftOut
	warnings []string
}

// decide turns votes into targets and lets adjudicators' decisions win.
func decide(ctx context.Context, t *tally, aggregation string, decisions map[int32][]string) (*targets, error) {
	out := &targets{q: t.q, answers: t.answers.clone(), of: make([]int32, len(t.answered)), answered: t.answered, voters: t.voters, left: t.left}
	out.majority(t)
	if aggregation == aggregateConsensus && t.voters > 1 {
		if err := out.consensus(ctx, t); err != nil {
			return nil, err
		}
	}
	for i := range out.of {
		if out.of[i] >= 0 {
			out.labelled++
			if clear, _ := plurality(t.votes(i)); clear {
				out.agreed++
			}
		}
	}
	for i, labels := range decisions {
		if clear, _ := plurality(t.votes(int(i))); !clear {
			out.agreed++ // settled, whatever the annotators said
		}
		if out.of[i] < 0 {
			out.labelled++
		}
		out.of[i] = out.answers.add(labels)
		out.answered[i] = true
	}
	return out, nil
}

// plurality is the answer with the most votes, the first seen among equals, and whether it has more than any other.
func plurality(votes []int32) (clear bool, answer int32) {
	best, ties := 0, 0
	answer = -1
	for i, a := range votes {
		if slices.Contains(votes[:i], a) {
			continue
		}
		n := 0
		for _, b := range votes[i:] {
			if a == b {
				n++
			}
		}
		switch {
		case n > best:
			best, ties, answer = n, 1, a
		case n == best:
			ties++
		}
	}
	return ties == 1, answer
}

// majority takes the answer with the most votes. Multi-label answers are voted label by label: a label is in when more
// than half chose it, or just half and the first annotator among them. When that leaves none, the most common answer counts.
func (out *targets) majority(t *tally) {
	many := t.q.many()
	for i := range out.of {
		votes := t.votes(i)
		_, out.of[i] = plurality(votes)
		if many && len(votes) > 2 {
			if labels := majorityLabels(t, votes); len(labels) > 0 {
				out.of[i] = out.answers.add(labels)
			}
		}
	}
}

func majorityLabels(t *tally, votes []int32) []string {
	counts := map[string]int{}
	for _, a := range votes {
		for _, l := range t.answers.labels[a] {
			counts[l]++
		}
	}
	var in []string
	for l, n := range counts {
		if 2*n > len(votes) || 2*n == len(votes) && slices.Contains(t.answers.labels[votes[0]], l) {
			in = append(in, l)
		}
	}
	return t.q.sort(in)
}

// consensus replaces the targets of a majority by those of Dawid and Skene's model. For multi-label answers each label
// is a question of its own, and an item for which no label passes keeps its majority.
func (out *targets) consensus(ctx context.Context, t *tally) error {
	b := t.ballots()
	if t.q.many() {
		return out.consensusByLabel(ctx, t, b)
	}
	order := t.classOrder()
	m, err := newModel(b, order, len(order))
	if errors.Is(err, errTooManyClasses) {
		out.warnings = append(out.warnings, fmt.Sprintf("%q has %d different answers from %d annotators, too many for a consensus: the majority was taken", t.q.Name, len(order), t.voters))
		return nil
	}
	if err != nil {
		return err
	}
	if err := m.fit(ctx); err != nil {
		return err
	}
	answer := make([]int32, len(order))
	for a, c := range order {
		answer[c] = int32(a)
	}
	for i, one := range b.of {
		if one >= 0 {
			out.of[i] = answer[m.best[one]]
		}
	}
	return nil
}

func (out *targets) consensusByLabel(ctx context.Context, t *tally, b *ballots) error {
	chosen := make([][]string, len(b.list))
	has := make([]int32, len(t.answers.labels))
	for _, label := range t.q.labelsOf(t.answers.labels) {
		for a, labels := range t.answers.labels {
			has[a] = 0
			if slices.Contains(labels, label) {
				has[a] = 1
			}
		}
		m, err := newModel(b, has, 2)
		if err == nil {
			err = m.fit(ctx)
		}
		if err != nil {
			return err
		}
		for i, best := range m.best {
			if best == 1 {
				chosen[i] = append(chosen[i], label)
			}
		}
	}
	for i, one := range b.of {
		if one >= 0 && len(chosen[one]) > 0 {
			out.of[i] = out.answers.add(chosen[one])
		}
	}
	return nil
}

// classOrder gives each answer its place among the classes in the order of their labels, so that ties go to the lowest.
func (t *tally) classOrder() []int32 {
	byLabel := make([]int, len(t.answers.labels))
	for i := range byLabel {
		byLabel[i] = i
	}
	slices.SortFunc(byLabel, func(a, b int) int { return slices.Compare(t.answers.labels[a], t.answers.labels[b]) })
	order := make([]int32, len(byLabel))
	for c, a := range byLabel {
		order[a] = int32(c)
	}
	return order
}
