package api

import (
	"errors"
	"fmt"
	"syscall"
)

// Kind says what sort of failure an Error is; handlers alone turn it into a status code.
type Kind string

// The kinds of errors.
const (
	KindInvalid         Kind = "invalid"
	KindUnauthenticated Kind = "unauthenticated"
	KindDenied          Kind = "denied"
	KindNotFound        Kind = "not_found"
	KindConflict        Kind = "conflict"
	KindGone            Kind = "gone"
	KindTooLarge        Kind = "too_large"
	KindTooMany         Kind = "too_many"
	KindUnavailable     Kind = "unavailable"
	KindInternal        Kind = "internal"
)

// Error is a failure told to a person: what happened (Message), what to do about it (Hint) and a stable Code that
// programs may rely on. The cause is for the log and is never shown.
type Error struct {
	Kind     Kind
	Code     string
	Message  string
	Hint     string
	Problems []Problem
	cause    error
}

// Problem is one thing wrong with some input: the field or the place in a file, and a sentence.
type Problem struct {
	Path       string `json:"path" doc:"Where in the input, e.g. model_training.backends.cluster.time or body.schemas"`
	Line       int    `json:"line,omitempty" doc:"Line in the file, from 1; absent when the input is no file"`
	Column     int    `json:"column,omitempty" doc:"Column in the file, from 1"`
	Message    string `json:"message" doc:"What is wrong, as a sentence"`
	Suggestion string `json:"suggestion,omitempty" doc:"The spelling that was probably meant"`
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, for errors.Is and the log.
func (e *Error) Unwrap() error { return e.cause }

// WithHint returns the error with what to do about it.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithCause returns the error with the failure that led to it, which only the log shows.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.cause = err
	return &c
}

// WithProblems returns the error with the places in the input that are wrong.
func (e *Error) WithProblems(p ...Problem) *Error {
	c := *e
	c.Problems = append(append([]Problem(nil), e.Problems...), p...)
	return &c
}

// AsError finds the Error in a chain; a failure of any other type is internal and says nothing to the outside.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: KindInternal, Code: "internal", Message: "internal error", cause: err}
}

// HasCode reports whether err carries the code.
func HasCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// IsDiskFull reports whether the system says that no space is left, on the disk or within a quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func newError(kind Kind, code, format string, args []any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalidf is an input that cannot be accepted as it is.
func Invalidf(code, format string, args ...any) *Error {
	return newError(KindInvalid, code, format, args)
}

// Unauthenticatedf is a call without a valid key, cookie or token.
func Unauthenticatedf(code, format string, args ...any) *Error {
	return newError(KindUnauthenticated, code, format, args)
}

// Deniedf is a call whose sender is known or irrelevant and which is refused all the same.
func Deniedf(code, format string, args ...any) *Error {
	return newError(KindDenied, code, format, args)
}

// NotFoundf is a thing that does not exist.
func NotFoundf(code, format string, args ...any) *Error {
	return newError(KindNotFound, code, format, args)
}

// Conflictf is a call that does not fit the present state.
func Conflictf(code, format string, args ...any) *Error {
	return newError(KindConflict, code, format, args)
}

// Gonef is a thing that is over and will not come back.
func Gonef(code, format string, args ...any) *Error {
	return newError(KindGone, code, format, args)
}

// TooLargef is an upload over its limit.
func TooLargef(code, format string, args ...any) *Error {
	return newError(KindTooLarge, code, format, args)
}

// TooManyf is a sender who asks too often.
func TooManyf(code, format string, args ...any) *Error {
	return newError(KindTooMany, code, format, args)
}

// Unavailablef is something that works later or elsewhere: a machine that cannot be reached, a bundle not ready yet.
func Unavailablef(code, format string, args ...any) *Error {
	return newError(KindUnavailable, code, format, args)
}
