package main

import (
	"context"
	"errors"
)

func measureIngest(ctx context.Context, b *bench) ([]row, error) {
	return nil, errors.New("not built yet")
}
