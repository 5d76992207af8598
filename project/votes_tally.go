package project

import (
	"slices"

	"potato/api"
)

// tally is all votes on one scheme, item by item, and within an item in the order of the annotators.
type tally struct {
	q        *question
	answers  answers
	start    []int32 // votes of item i are start[i] to start[i+1]
	worker   []int32
	answer   []int32
	answered []bool // by anyone, with a class or without, person or machine
	voters   int    // annotators with a vote that counts
	nVotes   int
	left     leftOut
}

// leftOut counts answers that are not trained on.
type leftOut struct {
	prelaid  int // pre-labels accepted untouched
	machines map[string]int
}

// count collects the votes of people; what machines said, and the pre-labels that people accepted untouched, are not labels.
func count(q *question, at int, people []*annotator, n int, withPrelaid bool) *tally {
	t := &tally{q: q, start: make([]int32, n+1), answered: make([]bool, n), left: leftOut{machines: map[string]int{}}}
	counts := func(a *annotator, v vote) bool {
		return v.answer >= 0 && a.machine == "" && (!v.prelaid || withPrelaid)
	}
	for _, a := range people {
		votes := 0
		for _, v := range a.votes[at] {
			t.answered[v.item] = true
			if counts(a, v) {
				t.start[v.item+1]++
				votes++
			} else if a.machine != "" {
				t.left.machines[a.user]++
			} else if v.prelaid {
				t.left.prelaid++
			}
		}
		if votes > 0 {
			t.voters++
		}
	}
	for i := range n {
		t.start[i+1] += t.start[i]
	}
	t.worker, t.answer = make([]int32, t.start[n]), make([]int32, t.start[n])
	next := make([]int32, n)
	copy(next, t.start[:n])
	for w, a := range people {
		place := make([]int32, len(a.answers[at].labels))
		for i, labels := range a.answers[at].labels {
			place[i] = t.answers.add(labels)
		}
		for _, v := range a.votes[at] {
			if !counts(a, v) {
				continue
			}
			i := next[v.item]
			if i > t.start[v.item] && t.worker[i-1] == int32(w) {
				t.answer[i-1] = place[v.answer] // the file names the item twice: the last counts
				continue
			}
			t.worker[i], t.answer[i] = int32(w), place[v.answer]
			next[v.item]++
			t.nVotes++
		}
	}
	t.close(next)
	return t
}

// close removes the gaps that items named twice have left.
func (t *tally) close(next []int32) {
	to := int32(0)
	for i := range next {
		from, end := t.start[i], next[i]
		t.start[i] = to
		to += int32(copy(t.worker[to:], t.worker[from:end]))
		copy(t.answer[t.start[i]:], t.answer[from:end])
	}
	t.start[len(next)] = to
	t.worker, t.answer = t.worker[:to], t.answer[:to]
}

func (t *tally) votes(item int) []int32 { return t.answer[t.start[item]:t.start[item+1]] }

// agreement is Krippendorff's alpha for nominal data over the items with two votes or more. A multi-label answer is one value. Nil when no item has
// two votes, or when all votes are the same, for then chance would agree as well.
func (t *tally) agreement() *float64 {
	totals := make([]float64, len(t.answers.labels))
	var agreed, n float64
	seen := map[int32]float64{}
	for i := range len(t.start) - 1 {
		votes := t.votes(i)
		if len(votes) < 2 {
			continue
		}
		clear(seen)
		for _, a := range votes {
			seen[a]++
			totals[a]++
		}
		for _, k := range seen {
			agreed += k * (k - 1) / float64(len(votes)-1)
		}
		n += float64(len(votes))
	}
	var byChance float64
	for _, k := range totals {
		byChance += k * (k - 1)
	}
	if n < 2 {
		return nil
	}
	observed, expected := 1-agreed/n, 1-byChance/(n*(n-1))
	if expected <= 0 {
		return nil
	}
	alpha := 1 - observed/expected
	return &alpha
}

// labelsOf are the labels that occur in answers, in the scheme's order.
func (q *question) labelsOf(answers [][]string) []string {
	return q.sort(slices.Concat(answers...))
}

func (q *question) many() bool { return q.Kind == api.KindMultilabel }
