// Package handlers is the HTTP service: every route is a Huma operation, one file a noun, and nothing is served that the
// OpenAPI document does not name. A handler asks the supervisor or the study, and turns the answer or the error into a
// reply; errors.go alone knows status codes.
package handlers
