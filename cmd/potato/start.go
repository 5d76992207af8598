package main

import (
	"context"

	"potato/api"
)

type startCommand struct {
	Config  string `arg:"" placeholder:"config.yaml" help:"The study's config."`
	Host    string `placeholder:"ADDRESS" help:"Address to listen on (default: all; only this machine with debug or without a good admin_api_key)."`
	Port    int    `short:"p" default:"8000" help:"Port to listen on; 0 takes a free one."`
	Debug   bool   `help:"Give requests from this machine admin access."`
	TLSCert string `name:"tls-cert" placeholder:"FILE" help:"Certificate to serve https with."`
	TLSKey  string `name:"tls-key" placeholder:"FILE" help:"Key of the certificate."`

	TrustedProxy []string `placeholder:"NETWORK" help:"Proxy whose X-Forwarded-For tells who signs in; an address or a network such as 10.0.0.0/8."`

	SSHConfig string `name:"ssh-config" hidden:"" placeholder:"FILE" help:"In place of the account's ssh configuration."`
}

// Help is the longer text of --help.
func (*startCommand) Help() string {
	return `It prints one line with its address once it answers, and serves until it is interrupted. What trains then goes on
and is picked up by the next start.

Example:

  potato start config.yaml --port 8000

Exit codes: 0 it was stopped, 1 it could not start, 2 wrong usage.`
}

// Validate is called by kong once the flags are read.
func (c *startCommand) Validate() error {
	switch {
	case c.Port < 0 || c.Port > 65535:
		return api.Invalidf("usage", "--port must be from 0 to 65535")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return api.Invalidf("usage", "--tls-cert and --tls-key go together")
	}
	return nil
}

// Run refuses on the errors that validate reports, and serves otherwise (V2).
func (c *startCommand) Run(ctx context.Context, p *program) error {
	config, err := p.loadConfig(c.Config)
	if err != nil {
		return err
	}
	return c.serve(ctx, p, config)
}
