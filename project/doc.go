// Package project is a study's folder: its config.yaml, its data files and its annotators' labels, turned into what a
// model trains on.
package project
