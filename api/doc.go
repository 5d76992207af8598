// Package api holds the nouns that every part of the program speaks: runs, backends, events, bundles, predictions,
// agents' jobs, check reports, trainers and schemes, with the rules that belong to them and the errors people read.
//
// It imports nothing of ours but its own pyjson. The structs carry `json`, `doc` and `enum` tags and become the schemas
// of the OpenAPI document under the same names; the TypeScript types are generated from that document.
package api
