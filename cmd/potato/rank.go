package main

import "potato/agent"

type rankCommand struct {
	Args []string `arg:"" optional:"" help:"The worker and its arguments."`
}

// Run starts the ranks of this node, between the shim and the workers of a job of several GPUs or nodes.
func (c *rankCommand) Run(p *program) error {
	return exit(agent.Rank(c.Args, p.err))
}
