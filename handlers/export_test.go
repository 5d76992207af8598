package handlers

// Statuses are the statuses that kinds of errors are answered with.
var Statuses = statuses
