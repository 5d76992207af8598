package project

import "context"

// Items is how many items the study has.
func (s *Study) Items(ctx context.Context) (int, error) {
	n := 0
	err := s.look(ctx, func(v *view) error {
		n = len(v.items.items)
		return nil
	})
	return n, err
}
