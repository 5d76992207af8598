package project

import (
	"context"
	"errors"
	"math"
	"slices"
)

const (
	consensusRounds    = 100
	consensusTolerance = 1e-6
	// consensusCells bounds a model's memory: a cell is two numbers of eight bytes.
	consensusCells = 8 << 20
)

var errTooManyClasses = errors.New("too many classes for a consensus")

// ballots are the votes of a scheme with equal items put together: a study of a million items and two annotators has a
// handful of different ones.
type ballots struct {
	of   []int32 // item → place in list; -1: no vote
	list []ballot
}

// ballot is who voted for what on so many items.
type ballot struct {
	worker []int32
	answer []int32
	items  float64
}

func (t *tally) ballots() *ballots {
	b := &ballots{of: make([]int32, len(t.answered))}
	known := map[string]int32{}
	var key []byte
	for i := range b.of {
		from, to := t.start[i], t.start[i+1]
		if from == to {
			b.of[i] = -1
			continue
		}
		key = key[:0]
		for v := from; v < to; v++ {
			w, a := t.worker[v], t.answer[v]
			key = append(key, byte(w), byte(w>>8), byte(w>>16), byte(w>>24), byte(a), byte(a>>8), byte(a>>16), byte(a>>24))
		}
		at, ok := known[string(key)]
		if !ok {
			at = int32(len(b.list))
			known[string(key)] = at
			b.list = append(b.list, ballot{worker: t.worker[from:to], answer: t.answer[from:to]})
		}
		b.list[at].items++
		b.of[i] = at
	}
	return b
}

// model is Dawid and Skene's: every annotator has a confusion matrix, every item a true class, and expectation
// maximisation finds both. It starts from the shares of the votes and smooths nothing, as the published tool does.
//
// Of an annotator's matrix only the columns exist that the annotator ever used.
type model struct {
	k       int
	list    []ballot
	columns [][]int32 // of each ballot's votes
	given   [][]int32 // classes of each ballot's votes
	owner   []int32   // column → annotator
	matrix  []float64 // k cells a column: how likely the annotator says so, given each class
	prior   []float64
	best    []int32 // most likely class of each ballot
}

// newModel prepares a model in which class says which of k classes an answer is.
func newModel(b *ballots, class []int32, k int) (*model, error) {
	m := &model{k: k, list: b.list, columns: make([][]int32, len(b.list)), given: make([][]int32, len(b.list)), best: make([]int32, len(b.list))}
	known := map[[2]int32]int32{}
	for i, one := range b.list {
		m.columns[i], m.given[i] = make([]int32, len(one.worker)), make([]int32, len(one.worker))
		for v, w := range one.worker {
			c := class[one.answer[v]]
			col, ok := known[[2]int32{w, c}]
			if !ok {
				col = int32(len(m.owner))
				known[[2]int32{w, c}] = col
				m.owner = append(m.owner, w)
			}
			m.columns[i][v], m.given[i][v] = col, c
		}
	}
	if len(m.owner)*k > consensusCells {
		return nil, errTooManyClasses
	}
	m.matrix = make([]float64, len(m.owner)*k)
	m.prior = make([]float64, k)
	return m, nil
}

// fit runs expectation maximisation until the likelihood stands still.
func (m *model) fit(ctx context.Context) error {
	posterior := make([]float64, m.k)
	prior, matrix := make([]float64, m.k), make([]float64, len(m.matrix))
	last := math.Inf(-1)
	for round := range consensusRounds + 1 {
		if err := ctx.Err(); err != nil {
			return err
		}
		clear(prior)
		clear(matrix)
		likelihood := 0.0
		for i, b := range m.list {
			if round == 0 {
				shares(m.given[i], posterior)
			} else {
				likelihood += b.items * m.expect(i, posterior)
			}
			m.best[i] = argmax(posterior)
			for c, p := range posterior {
				if p == 0 {
					continue
				}
				p *= b.items
				prior[c] += p
				for _, col := range m.columns[i] {
					matrix[int(col)*m.k+c] += p
				}
			}
		}
		if round > 0 && math.Abs(likelihood-last) < consensusTolerance {
			return nil
		}
		if round > 0 {
			last = likelihood
		}
		m.maximise(prior, matrix)
	}
	return nil
}

// shares is where the model starts: the shares of the votes.
func shares(given []int32, out []float64) {
	clear(out)
	for _, c := range given {
		out[c] += 1 / float64(len(given))
	}
}

// expect fills in how likely each class is for a ballot and returns the logarithm of the ballot's likelihood.
func (m *model) expect(i int, out []float64) float64 {
	copy(out, m.prior)
	log := 0.0
	for _, col := range m.columns[i] {
		cells := m.matrix[int(col)*m.k:][:m.k]
		sum := 0.0
		for c, p := range cells {
			out[c] *= p
			sum += out[c]
		}
		if sum == 0 { // rounding has eaten the last class that was not ruled out
			shares(m.given[i], out)
			return log
		}
		for c := range out {
			out[c] /= sum
		}
		log += math.Log(sum)
	}
	return log
}

// maximise turns sums into probabilities: of a class, and of an annotator's answer given the class.
func (m *model) maximise(prior, matrix []float64) {
	total := 0.0
	for _, p := range prior {
		total += p
	}
	for c, p := range prior {
		m.prior[c] = p / total
	}
	sums := make([]float64, (int(slices.Max(m.owner))+1)*m.k)
	for col, w := range m.owner {
		for c := range m.k {
			sums[int(w)*m.k+c] += matrix[col*m.k+c]
		}
	}
	for col, w := range m.owner {
		for c := range m.k {
			if sum := sums[int(w)*m.k+c]; sum > 0 {
				m.matrix[col*m.k+c] = matrix[col*m.k+c] / sum
			} else {
				m.matrix[col*m.k+c] = 0
			}
		}
	}
}

// argmax is the lowest of the most likely classes; likelihoods that differ by rounding alone are equal.
func argmax(p []float64) int32 {
	best := slices.Max(p)
	for c, v := range p {
		if v >= best-1e-12 {
			return int32(c)
		}
	}
	return 0
}
