package runners

import (
	"testing"
	"time"
)

// What ships are the specification's times (H5, H7).
func TestTimes(t *testing.T) {
	if copyStall != 180*time.Second {
		t.Errorf("a copy may send nothing for %v, want 180 s", copyStall)
	}
	if checkTime >= 20*time.Second {
		t.Errorf("a check takes up to %v, want less than 20 s", checkTime)
	}
}
