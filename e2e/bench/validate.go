package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// measureValidate times the command that checks a config. The file has two keys that the peer does not know, of which it
// warns; neither side finds an error.
func measureValidate(ctx context.Context, b *bench) ([]row, error) {
	study, err := b.writeStudy("validate", smallStudy)
	if err != nil {
		return nil, err
	}
	r := row{Name: "validate", What: "`potato validate`", Unit: "s", Bar: atMost(0.05, "F1")}
	for i := range b.repeats + 1 {
		theirs, err := validate(ctx, b.peerProgram(), study)
		if err != nil {
			return nil, err
		}
		own, err := validate(ctx, b.potato, study)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			continue // the first reads the programs from the disk
		}
		r.Peer = append(r.Peer, theirs)
		r.Ours = append(r.Ours, own)
		b.say("peer %.3f s, ours %.3f s", theirs, own)
	}
	return []row{r}, nil
}

func validate(ctx context.Context, program, study string) (float64, error) {
	begin := time.Now()
	out, err := exec.CommandContext(ctx, program, "validate", filepath.Join(study, "config.yaml")).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s validate: %w\n%s", program, err, out)
	}
	return time.Since(begin).Seconds(), nil
}
