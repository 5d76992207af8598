package main

import "potato/agent"

type hostedCommand struct{}

// Run is the agent that a server starts on a machine it has logged in to.
func (*hostedCommand) Run(p *program) error {
	return exit(agent.Hosted(p.in, p.out))
}

type stopCommand struct{}

// Run ends what runs in a job directory on such a machine.
func (*stopCommand) Run(p *program) error {
	return exit(agent.Stop(p.in))
}
