package project

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
)

// splitter puts items into splits by a hash of seed and id (PEER's rule): an item stays where it is from run to run,
// whatever else is labelled meanwhile.
type splitter struct {
	prefix []byte
	names  []string
	bounds []float64
	buf    []byte
}

// newSplitter takes shares that the config's rules have passed.
func newSplitter(seed int64, splits Splits) *splitter {
	s := &splitter{prefix: append(strconv.AppendInt(nil, seed, 10), ':')}
	total, bound := 0.0, 0.0
	for _, x := range splits {
		total += x.Fraction
	}
	for _, x := range splits {
		bound += x.Fraction / total
		s.names = append(s.names, x.Name)
		s.bounds = append(s.bounds, bound)
	}
	return s
}

// of is the place of an item's split in names.
func (s *splitter) of(id string) int {
	s.buf = append(append(s.buf[:0], s.prefix...), id...)
	sum := sha256.Sum256(s.buf)
	x := float64(binary.BigEndian.Uint32(sum[:4])) / 0xFFFFFFFF
	for i, bound := range s.bounds {
		if x <= bound {
			return i
		}
	}
	return len(s.bounds) - 1 // rounding has left the last bound a little below 1
}
