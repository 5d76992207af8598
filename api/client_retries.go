package api

import "context"

type retriesKey struct{}

// WithRetries returns a context in which the transfers of a Client tell what went wrong and is tried again, from the
// goroutine that called it.
func WithRetries(ctx context.Context, tell func(what string, err error)) context.Context {
	return context.WithValue(ctx, retriesKey{}, tell)
}

func retrying(ctx context.Context, what string, err error) {
	if tell, ok := ctx.Value(retriesKey{}).(func(what string, err error)); ok {
		tell(what, err)
	}
}
