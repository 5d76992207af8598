//go:build race

package store_test

// raced says that the race detector runs, under which nothing is as quick as it is.
const raced = true
