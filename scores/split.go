package scores

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"potato/api"
)

// confusionLabels is the largest confusion matrix that is kept: beyond it nobody reads one, and it grows with the square.
const confusionLabels = 200

func (s *scheme) scores(m api.Manifest) api.SchemaScores {
	out := api.SchemaScores{Schema: s.Name, Kind: s.Kind, Train: api.Metrics{}, Warnings: []string{}}
	for i, split := range []**api.SplitScores{&out.Val, &out.Test} {
		if !hasRole(m, roles[i]) {
			out.Warnings = append(out.Warnings, fmt.Sprintf("There is no %s split in the config's splits, so nothing is scored on one.", roles[i]))
			continue
		}
		*split = s.split(&s.counts[i], roles[i])
	}
	return out
}

func hasRole(m api.Manifest, role string) bool {
	for name := range m.Splits {
		if api.SplitRole(name) == role {
			return true
		}
	}
	return false
}

// split works out the scores on one split.
func (s *scheme) split(c *counts, role string) *api.SplitScores {
	out := &api.SplitScores{N: c.predicted(), Labels: []api.LabelScore{}, Reliability: []api.Bin{}, Warnings: []string{}}
	warn := func(format string, args ...any) { out.Warnings = append(out.Warnings, fmt.Sprintf(format, args...)) }
	switch {
	case c.items == 0:
		warn("The %s split is empty: no labelled item falls into it, so there is no score.", role)
		return out
	case out.N == 0:
		warn("None of the %d items of the %s split got a prediction, so there is no score.", c.items, role)
		return out
	case out.N < c.items:
		warn("%d of the %d items of the %s split got no prediction and do not count.", c.items-out.N, c.items, role)
	}
	t := c.byLabel(s)
	occurring := s.occurring(t)
	out.Labels = s.labelScores(t, occurring)
	if !s.many() {
		if len(occurring) <= confusionLabels {
			out.Confusion = s.confusion(c, occurring)
		} else {
			warn("The confusion matrix of the %s split is left out: it would have %d rows.", role, len(occurring))
		}
	}
	if len(c.support) == 1 {
		warn("All %d items of the %s split have the same answer (%s): a score on them would say nothing.", c.items, role, s.only(c.support))
		for i := range out.Labels {
			out.Labels[i].Precision, out.Labels[i].Recall, out.Labels[i].F1 = nil, nil, nil
		}
		return out
	}
	out.Accuracy = ratio(c.correct(), out.N)
	out.MacroF1 = macroF1(out.Labels)
	switch s.Kind {
	case api.KindMultilabel:
		out.MicroF1 = microF1(t)
	case api.KindOrdinal:
		s.ordinal(c, out, warn)
	}
	s.calibration(c, out, role, warn)
	return out
}

// calibration fills in what needs probabilities.
func (s *scheme) calibration(c *counts, out *api.SplitScores, role string, warn func(string, ...any)) {
	switch {
	case c.judged == 0:
		warn("The model gives no probabilities, so there is no calibration error on the %s split.", role)
	case c.unjudged > 0:
		warn("%d of %d predictions on the %s split have no probability, so there is no calibration error.", c.unjudged, out.N, role)
	default:
		ece, filled := c.calibration()
		out.ECE, out.Reliability = &ece, filled
	}
}

// occurring are the labels in truth or prediction, in the scheme's order.
func (s *scheme) occurring(t cells) []int32 {
	var out []int32
	for i := range s.labels {
		if t.support[i] > 0 || t.predicted[i] > 0 {
			out = append(out, int32(i))
		}
	}
	return out
}

// only writes the one answer out for people.
func (s *scheme) only(support map[int32]int) string {
	for a := range support {
		if !s.many() {
			return s.labels[a]
		}
		var names []string
		for _, l := range s.sets[a] {
			names = append(names, s.labels[l])
		}
		return strings.Join(names, ", ")
	}
	return ""
}

func (s *scheme) labelScores(t cells, occurring []int32) []api.LabelScore {
	out := make([]api.LabelScore, 0, len(occurring))
	for _, l := range occurring {
		out = append(out, api.LabelScore{
			Label: s.labels[l], Support: t.support[l], Predicted: t.predicted[l],
			Precision: ratio(t.truePositive[l], t.predicted[l]), Recall: ratio(t.truePositive[l], t.support[l]),
			F1: ratio(2*t.truePositive[l], t.support[l]+t.predicted[l]),
		})
	}
	return out
}

func (s *scheme) confusion(c *counts, occurring []int32) *api.Confusion {
	out := &api.Confusion{Labels: []string{}, Counts: [][]int{}}
	place := make(map[int32]int, len(occurring))
	for i, l := range occurring {
		place[l] = i
		out.Labels = append(out.Labels, s.labels[l])
		out.Counts = append(out.Counts, make([]int, len(occurring)))
	}
	for pair, k := range c.pairs {
		out.Counts[place[pair[0]]][place[pair[1]]] = k
	}
	return out
}

// ratio is nil where it would divide by nought.
func ratio(n, of int) *float64 {
	if of == 0 {
		return nil
	}
	f := float64(n) / float64(of)
	return &f
}

// macroF1 is the mean over the labels that occur in truth or prediction.
func macroF1(labels []api.LabelScore) *float64 {
	sum := 0.0
	for _, l := range labels {
		sum += *l.F1
	}
	mean := sum / float64(len(labels))
	return &mean
}

func microF1(t cells) *float64 {
	hits, all := 0, 0
	for i := range t.support {
		hits += 2 * t.truePositive[i]
		all += t.support[i] + t.predicted[i]
	}
	return ratio(hits, all)
}

// ordinal fills in what takes the answers for points of a scale.
func (s *scheme) ordinal(c *counts, out *api.SplitScores, warn func(string, ...any)) {
	var points []float64
	for _, l := range s.labels {
		points = append(points, s.point(l))
	}
	truth, guess := map[int32]float64{}, map[int32]float64{}
	off, squares := 0.0, 0.0
	for pair, k := range c.pairs {
		d := points[pair[0]] - points[pair[1]]
		if math.IsNaN(d) {
			warn("A predicted answer is no point of the scale, so there is neither a mean error nor a kappa.")
			return
		}
		n := float64(k)
		off += n * math.Abs(d)
		squares += n * d * d
		truth[pair[0]] += n
		guess[pair[1]] += n
	}
	mae := off / float64(out.N)
	out.MAE = &mae
	byChance := 0.0
	for _, t := range slices.Sorted(maps.Keys(truth)) {
		for _, g := range slices.Sorted(maps.Keys(guess)) {
			d := points[t] - points[g]
			byChance += truth[t] * guess[g] * d * d / float64(out.N)
		}
	}
	if byChance > 0 {
		kappa := 1 - squares/byChance
		out.QuadraticKappa = &kappa
	}
}

// point is where on the scale an answer stands: its number, or, where answers are words, its place among them.
func (s *scheme) point(label string) float64 {
	for _, l := range s.Labels {
		if _, err := strconv.ParseFloat(l, 64); err != nil {
			if i := slices.Index(s.Labels, label); i >= 0 {
				return float64(i + 1)
			}
			return math.NaN()
		}
	}
	f, err := strconv.ParseFloat(label, 64)
	if err != nil {
		return math.NaN()
	}
	return f
}
