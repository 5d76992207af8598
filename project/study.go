package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"potato/api"
)

// Study reads a study's items and labels. Files are read once for every change of them, and what is kept of them is
// small: ids, places, votes. It is safe for concurrent use; whoever comes while files are read waits for that.
type Study struct {
	cfg       *Config
	questions []*question // the trainable ones
	gate      chan struct{}

	// All below belong to whoever holds the gate.
	view      *view
	states    stateReads
	decisions decisionsRead
	summaries map[string]Readiness // of view
}

// view is the study as it was at one moment. It never changes.
type view struct {
	items     *itemIndex
	people    []*annotator
	decisions decisionsRead
	warnings  []string
}

// OpenStudy gives access to the study of a config. Nothing is read before it is asked for.
func OpenStudy(cfg *Config) *Study {
	s := &Study{cfg: cfg, gate: make(chan struct{}, 1)}
	for _, x := range cfg.AnnotationSchemes {
		if q := newQuestion(x); trainable(q.Kind) {
			s.questions = append(s.questions, q)
		}
	}
	return s
}

// Close gives up the files that are open. Calls under way go on.
func (s *Study) Close() error {
	s.gate <- struct{}{}
	defer func() { <-s.gate }()
	if s.view != nil {
		s.view.items.retire()
	}
	s.view, s.states, s.summaries = nil, nil, nil
	return nil
}

// dataRetries is how often the data files are read when they change under our hands.
const dataRetries = 3

// look reads what has changed and calls use with the study as it is, holding the gate.
func (s *Study) look(ctx context.Context, use func(*view) error) error {
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.gate }()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	return use(s.view)
}

// take is look for work that takes long: the view's items stay usable until they are released, and nobody waits meanwhile.
func (s *Study) take(ctx context.Context) (*view, error) {
	var v *view
	err := s.look(ctx, func(now *view) error {
		v = now
		v.items.use()
		return nil
	})
	return v, err
}

func (s *Study) refresh(ctx context.Context) error {
	items, err := s.refreshItems(ctx)
	if err != nil {
		return err
	}
	sameItems := s.view != nil && items == s.view.items
	old := s.states
	if !sameItems && s.view != nil {
		// Places in the index are others now: every file is read again, and of one that cannot be, the last good reading is moved.
		old = stateReads{}
		for dir, r := range s.states {
			if r.good != nil {
				old[dir] = &stateRead{good: r.good.moved(s.view.items, items)}
			}
		}
	}
	states, changed, err := old.refresh(ctx, s.cfg.OutputPath(), items, s.questions)
	if err != nil {
		return err
	}
	decisions, decided, err := s.decisions.refresh(ctx, s.cfg, items, s.questions, sameItems)
	if err != nil {
		return err
	}
	if sameItems && !changed && !decided {
		return nil
	}
	if s.view != nil && !sameItems {
		s.view.items.retire()
	}
	s.states, s.decisions = states, decisions
	s.view = &view{items: items, people: states.annotators(), decisions: decisions,
		warnings: slices.Concat(items.warnings, states.warnings(), decisions.warnings())}
	s.summaries = map[string]Readiness{}
	return nil
}

// refreshItems returns the index, the one there is when no data file has changed.
func (s *Study) refreshItems(ctx context.Context) (*itemIndex, error) {
	for try := 1; ; try++ {
		files, err := s.cfg.dataFiles()
		if err != nil {
			return nil, err
		}
		if s.view != nil && slices.EqualFunc(files, s.view.items.files, func(a, b *dataFile) bool {
			return a.path == b.path && unchanged(a.stamp, b.stamp)
		}) {
			return s.view.items, nil
		}
		items, err := readItems(ctx, files)
		if errors.Is(err, errDataChanged) && try < dataRetries {
			continue
		}
		if errors.Is(err, errDataChanged) {
			return nil, dataChanging(err)
		}
		return items, err
	}
}

// named finds the questions of schemes by name.
func (s *Study) named(schemes []string) ([]*question, error) {
	out := make([]*question, 0, len(schemes))
	var problems []api.Problem
	for i, name := range schemes {
		path := fmt.Sprintf("body.schemas[%d]", i)
		scheme, known := s.cfg.SchemeByName(name)
		switch {
		case !known:
			p := api.Problem{Path: path, Message: fmt.Sprintf("The study has no scheme named %q.", name)}
			var names []string
			for _, x := range s.cfg.AnnotationSchemes {
				names = append(names, x.Name)
			}
			p.Suggestion = api.Suggest(name, names)
			problems = append(problems, p)
		case !trainable(scheme.Kind):
			problems = append(problems, api.Problem{Path: path, Message: whyNot(scheme)})
		case slices.Contains(schemes[:i], name):
			problems = append(problems, api.Problem{Path: path, Message: fmt.Sprintf("%q is named twice.", name)})
		default:
			out = append(out, s.questions[s.place(name)])
		}
	}
	if len(problems) == 0 {
		return out, nil
	}
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Message)
	}
	return nil, api.Invalidf("bad_schemas", "%s", strings.Join(texts, " ")).WithProblems(problems...).
		WithHint("choose among the schemes that listSchemas calls trainable")
}

func (s *Study) place(name string) int {
	return slices.IndexFunc(s.questions, func(q *question) bool { return q.Name == name })
}

// targets works out what is trained on for a scheme.
func (s *Study) targets(ctx context.Context, v *view, q *question) (*targets, *tally, error) {
	at := s.place(q.Name)
	t := count(q, at, v.people, len(v.items.items), s.cfg.ModelTraining.TrainOnAcceptedPrelabels)
	out, err := decide(ctx, t, s.cfg.ModelTraining.aggregation(), v.decisions.of(at))
	return out, t, err
}

func (m ModelTraining) aggregation() string {
	if m.Aggregation == aggregateMajority {
		return aggregateMajority
	}
	return aggregateConsensus
}

// Annotations is how many answers to trainable schemes there are, of people: what auto-retrain counts.
func (s *Study) Annotations(ctx context.Context, schemes []string) (int, error) {
	n := 0
	err := s.look(ctx, func(v *view) error {
		for i, q := range s.questions {
			if !slices.Contains(schemes, q.Name) {
				continue
			}
			for _, a := range v.people {
				if a.machine == "" {
					n += len(a.votes[i])
				}
			}
		}
		return nil
	})
	return n, err
}

func decisionsPath(cfg *Config) string {
	sub := cfg.Adjudication.OutputSubdir
	if sub == "" {
		sub = "adjudication"
	}
	return filepath.Join(cfg.OutputPath(), sub, "decisions.json")
}

func statIfThere(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return info, err
}
