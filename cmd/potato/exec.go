package main

import "potato/agent"

type execCommand struct{}

// Run is the shim between the agent and a worker.
func (*execCommand) Run(p *program) error {
	return exit(agent.Exec(p.in))
}
