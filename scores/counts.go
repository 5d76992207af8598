package scores

import (
	"math"
	"slices"

	"potato/api"
)

// bins of the reliability diagram, equally wide.
const bins = 15

// counts is what is counted of one scheme on one split.
type counts struct {
	items    int              // with a target
	support  map[int32]int    // answer → items
	pairs    map[[2]int32]int // true and predicted answer → items
	bin      [bins]bin
	judged   int // predictions, or label decisions, with a probability
	unjudged int // without
}

type bin struct {
	n          int
	confidence float64
	correct    int
}

func newCounts() counts {
	return counts{support: map[int32]int{}, pairs: map[[2]int32]int{}}
}

// judge puts a decision and its probability into the reliability diagram. A bin holds its upper edge, the first also 0.
func (c *counts) judge(probability *float64, correct bool) {
	if probability == nil {
		c.unjudged++
		return
	}
	p := *probability
	i := min(max(int(math.Ceil(p*bins))-1, 0), bins-1)
	if i > 0 && p <= float64(i)/bins { // rounding has carried an edge over
		i--
	}
	b := &c.bin[i]
	b.n++
	b.confidence += p
	if correct {
		b.correct++
	}
	c.judged++
}

// judgeLabels judges each label of a multi-label prediction as a decision of its own: in with its probability, or out
// with the rest.
func (c *counts) judgeLabels(s *scheme, target, predicted []int32, scores map[string]float64) {
	for i, l := range s.labels {
		p, scored := scores[l]
		if !scored {
			if len(scores) == 0 && i == 0 {
				c.unjudged++
			}
			continue
		}
		in := slices.Contains(predicted, int32(i))
		if !in {
			p = 1 - p
		}
		c.judge(&p, in == slices.Contains(target, int32(i)))
	}
}

// predicted is how many items got a prediction.
func (c *counts) predicted() int {
	n := 0
	for _, k := range c.pairs {
		n += k
	}
	return n
}

// correct is how many items were predicted wholly right.
func (c *counts) correct() int {
	n := 0
	for pair, k := range c.pairs {
		if pair[0] == pair[1] {
			n += k
		}
	}
	return n
}

// calibration is the expected calibration error and the filled bins.
func (c *counts) calibration() (float64, []api.Bin) {
	out, ece := []api.Bin{}, 0.0
	for i, b := range c.bin {
		if b.n == 0 {
			continue
		}
		confidence, accuracy := b.confidence/float64(b.n), float64(b.correct)/float64(b.n)
		ece += float64(b.n) / float64(c.judged) * math.Abs(confidence-accuracy)
		out = append(out, api.Bin{Lower: float64(i) / bins, Upper: float64(i+1) / bins, N: b.n, Confidence: confidence, Accuracy: accuracy})
	}
	return ece, out
}

// cells is a table of counts by true and predicted label.
type cells struct {
	truePositive, support, predicted []int
}

// byLabel counts items label by label.
func (c *counts) byLabel(s *scheme) cells {
	n := len(s.labels)
	t := cells{make([]int, n), make([]int, n), make([]int, n)}
	for pair, k := range c.pairs {
		target, predicted := pair[:1], pair[1:]
		if s.many() {
			target, predicted = s.sets[pair[0]], s.sets[pair[1]]
		}
		for _, l := range target {
			t.support[l] += k
			if slices.Contains(predicted, l) {
				t.truePositive[l] += k
			}
		}
		for _, l := range predicted {
			t.predicted[l] += k
		}
	}
	return t
}
