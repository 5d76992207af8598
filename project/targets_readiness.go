package project

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"potato/api"
)

// Readiness is whether a scheme can be trained now, with the counts that say why.
type Readiness struct {
	api.SchemeSummary
	NAgreed  int            // labelled items on which one answer has more votes than any other
	Splits   map[string]int // labelled items of each split
	Warnings []string       // whose labels are missing, what was left out
	strange  int            // answers for items that the data files do not have
}

// Readiness tells of each named scheme whether it can be trained now, or of all schemes of the config when none is named. It is cheap: it is
// worked out once for every change of the study's files.
func (s *Study) Readiness(ctx context.Context, schemes ...string) ([]Readiness, error) {
	all := s.cfg.Schemes()
	if len(schemes) > 0 {
		all = slices.DeleteFunc(all, func(x api.Scheme) bool { return !slices.Contains(schemes, x.Name) })
	}
	out := make([]Readiness, 0, len(all))
	err := s.look(ctx, func(v *view) error {
		for _, x := range all {
			r, known := s.summaries[x.Name]
			if !known {
				var err error
				if r, err = s.ready(ctx, v, x); err != nil {
					return err
				}
				s.summaries[x.Name] = r
			}
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// CheckTrainable refuses schemes that do not exist or are of no trainable kind (code bad_schemas), and those without
// labels to train on (code nothing_to_train), with the counts.
func (s *Study) CheckTrainable(ctx context.Context, schemes []string) error {
	if _, err := s.named(schemes); err != nil {
		return err
	}
	ready, err := s.Readiness(ctx, schemes...)
	if err != nil {
		return err
	}
	var problems []api.Problem
	var texts []string
	for _, r := range ready {
		if !r.Trainable {
			at := slices.Index(schemes, r.Name)
			problems = append(problems, api.Problem{Path: fmt.Sprintf("body.schemas[%d]", at), Message: r.Reason})
			texts = append(texts, r.Reason)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	hint := "label more items; the Training page shows the counts of each scheme"
	switch {
	case ready[0].NItems == 0:
		hint = "look at data_files in the config: they hold no item"
	case ready[0].NLabeled == 0 && ready[0].strange > 0:
		hint = "look at data_files and item_properties.id_key in the config: the ids have to be those that were annotated"
	}
	return api.Invalidf("nothing_to_train", "%s", strings.Join(texts, " ")).WithProblems(problems...).WithHint("%s", hint)
}

func (s *Study) ready(ctx context.Context, v *view, x api.Scheme) (Readiness, error) {
	r := Readiness{SchemeSummary: api.SchemeSummary{
		Name: x.Name, AnnotationType: x.AnnotationType, Kind: x.Kind, Trainers: []string{}, NItems: len(v.items.items), LabelCounts: []api.LabelCount{},
		PredictsUnlabeled: s.cfg.ModelTraining.Writeback.IncludeUnlabeled,
	}, Splits: map[string]int{}}
	for _, c := range s.cfg.AnnotationSchemes {
		if c.Name == x.Name {
			r.Description = c.Description
		}
	}
	if !trainable(x.Kind) {
		r.Reason = whyNot(x)
		return r, nil
	}
	split := newSplitter(s.cfg.ModelTraining.SplitSeed, s.cfg.ModelTraining.Splits)
	t, votes, err := s.targets(ctx, v, s.questions[s.place(x.Name)])
	if err != nil {
		return r, err
	}
	r.NLabeled, r.NAgreed, r.NAnnotators, r.Agreement = t.labelled, t.agreed, t.voters, votes.agreement()
	counts := map[string]int{}
	seen, trained := map[int32]bool{}, map[int32]bool{}
	for i, a := range t.of {
		if !t.answered[i] {
			r.NUnlabeled++
		}
		if a < 0 {
			continue
		}
		name := split.names[split.of(v.items.items[i].id)]
		r.Splits[name]++
		seen[a] = true
		if name == api.SplitTrain {
			trained[a] = true
		}
		for _, l := range t.answers.labels[a] {
			counts[l]++
		}
	}
	for l, n := range counts {
		r.LabelCounts = append(r.LabelCounts, api.LabelCount{Label: l, N: n})
	}
	slices.SortFunc(r.LabelCounts, func(a, b api.LabelCount) int {
		return cmp.Or(cmp.Compare(b.N, a.N), t.q.compare(a.Label, b.Label))
	})
	r.Warnings = slices.Concat(v.warnings, t.warnings, t.left.warnings(t.q.Name))
	for _, a := range v.people {
		r.strange += a.strange
	}
	r.Reason = r.reason(t.named(seen), t.named(trained))
	r.Trainable = r.Reason == ""
	return r, nil
}

// named writes answers out for people.
func (t *targets) named(set map[int32]bool) []string {
	var out []string
	for a := range set {
		out = append(out, strings.Join(t.answers.labels[a], ", "))
	}
	slices.Sort(out)
	return out
}

// reason says why a scheme cannot be trained now, or nothing. seen are the different answers, trained those of the training split.
func (r Readiness) reason(seen, trained []string) string {
	switch {
	case r.NItems == 0:
		return "The study has no items: its data files are empty."
	case r.NLabeled == 0 && r.NUnlabeled == r.NItems && r.strange > 0:
		return fmt.Sprintf("Nobody has answered %q for one of the %d items in the data files; the annotators' files have answers for %d items with other ids.",
			r.Name, r.NItems, r.strange)
	case r.NLabeled == 0 && r.NUnlabeled == r.NItems:
		return fmt.Sprintf("Nobody has answered %q yet: 0 of %d items are labelled.", r.Name, r.NItems)
	case r.NLabeled == 0:
		return fmt.Sprintf("%d of %d items have an answer to %q, but none of the answers is a label to train on.", r.NItems-r.NUnlabeled, r.NItems, r.Name)
	case r.NAgreed == 0:
		return fmt.Sprintf("The annotators disagree on %q everywhere: %d of %d items are labelled, and on none of them does one answer have more votes than the others.", r.Name, r.NLabeled, r.NItems)
	case len(seen) == 1:
		return fmt.Sprintf("All %d labelled items have the same answer to %q (%s); a model needs at least two different ones.", r.NLabeled, r.Name, seen[0])
	case len(trained) == 0:
		return fmt.Sprintf("None of the %d items labelled for %q falls into the training split; label more items.", r.NLabeled, r.Name)
	case len(trained) == 1:
		return fmt.Sprintf("All %d training items of %q have the same answer (%s), %d items are labelled in all; a model needs at least two different ones.", r.Splits[api.SplitTrain], r.Name, trained[0], r.NLabeled)
	}
	return ""
}

// warnings say what was left out of the labels.
func (l leftOut) warnings(scheme string) []string {
	var out []string
	if l.prelaid > 0 {
		out = append(out, fmt.Sprintf("%q: %d pre-labels that annotators accepted untouched were not used as labels; train_on_accepted_prelabels uses them", scheme, l.prelaid))
	}
	for _, user := range slices.Sorted(maps.Keys(l.machines)) {
		out = append(out, fmt.Sprintf("%q: the %d answers of %s, which is a machine, were not used as labels", scheme, l.machines[user], user))
	}
	return out
}
