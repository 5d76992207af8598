// Package trainers is where the Python that trains lies: a worker and one file for each trainer, embedded, with what Go
// needs to use it. It writes the files where an interpreter can run them, asks an interpreter what it can train, and
// checks a trainer's parameters before a run starts. README.md is the contract of a trainer.
package trainers
