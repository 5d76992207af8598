package project

import "context"

// Known returns a function that reports whether the study, as it is now, has an item.
func (s *Study) Known(ctx context.Context) (func(instanceID string) bool, error) {
	var items *itemIndex
	err := s.look(ctx, func(v *view) error {
		items = v.items
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func(instanceID string) bool {
		_, there := items.find([]byte(instanceID))
		return there
	}, nil
}
