package agent

// ExplainPending is explainPending with its answer taken apart.
func ExplainPending(reason, jobID string) (words, verdict, hint string) {
	r := explainPending(reason, jobID)
	return r.Words, string(r.Verdict), r.Hint
}

// KnownReason reports whether the reason is in the tables.
func KnownReason(reason string) bool {
	_, known := knownReason(plainReason(reason))
	return known
}
