// Package handlers is where HTTP requests become answers: every route of the API is a Huma operation, one file a noun,
// and so in the OpenAPI document; beside them stand only the page, the document itself and /metrics. A handler asks the
// supervisor and turns its answer or error into a reply; errors.go alone knows which status goes with which error.
package handlers
