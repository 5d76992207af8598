package agent

import "potato/api"

// Follower is the follower alone, for what needs many files quickly.
type Follower struct{ f follower }

// NewFollower follows the worker's files in dir, with a limit for lines.
func NewFollower(dir string, maxLine int64) *Follower {
	return &Follower{follower{dir: dir, logLimit: 1 << 40, maxLine: maxLine, at: position{Attempt: 1}}}
}

// Read returns what is new, each event with its attempt.
func (f *Follower) Read(final bool) (events []api.Event, err error) {
	for more := true; more; {
		var recs []record
		recs, more, err = f.f.turn(final)
		for _, r := range recs {
			r.Event.Attempt = r.Attempt
			events = append(events, r.Event)
		}
		if err != nil {
			return events, err
		}
	}
	return events, nil
}

// Again is a follower that goes on from what an outbox remembers of this one.
func (f *Follower) Again() *Follower {
	return &Follower{follower{dir: f.f.dir, logLimit: f.f.logLimit, maxLine: f.f.maxLine, at: f.f.at}}
}

// Clean is what a worker's bytes become.
var Clean = clean
