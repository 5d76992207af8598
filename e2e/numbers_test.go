package e2e_test

import (
	"strconv"
	"testing"
)

func number(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func deref(p *float64) any {
	if p == nil {
		return nil
	}
	return *p
}
