// Package pyjson is where JSON is read and written as Python's json module does it, because the files of a study are
// written by Python programs and read by them again.
//
// It differs from encoding/json where that loses something: NaN and Infinity are accepted, integers keep all their
// digits, members keep their order, and a lone surrogate such as "\ud83d", which Go's strings in UTF-8 cannot hold,
// survives: in memory it is the three bytes that UTF-8 would give that code point (WTF-8), and AppendString writes it as the
// escape that it was. Such strings compare and sort as Python's do.
package pyjson
