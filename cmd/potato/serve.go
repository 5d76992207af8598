package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"potato/api"
	"potato/handlers"
	"potato/project"
	"potato/spa"
	"potato/store"
)

// serve opens the study and answers until it is stopped. Nothing of the study's data is read before that.
func (c *startCommand) serve(ctx context.Context, p *program, config *project.Config) (err error) {
	if !config.ModelTraining.Enabled {
		return api.Invalidf("training_off", "%s does not say that this study trains models", config.File).
			WithHint("set model_training.enabled to true in it")
	}
	log := slog.New(slog.NewTextHandler(p.err, nil))
	cert, err := certificate(c.TLSCert, c.TLSKey)
	if err != nil {
		return err
	}
	proxies, err := prefixes(c.TrustedProxy)
	if err != nil {
		return err
	}
	debug := c.Debug || config.Debug
	host, why := c.Host, ""
	if host == "" {
		host, why = listenAddress(config, debug)
	}
	lock, err := store.LockDir(config.TrainingPath(), time.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	listener, err := listen(ctx, host, c.Port)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server closes it first
	here := onThisMachineOnly(listener)
	for _, line := range cautions(config, debug, here, c.Host, why) {
		log.Warn(line)
	}
	closed := ""
	if here {
		closed = shutOut
	}
	s, err := openStudy(ctx, config, closed, c.SSHConfig, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return serving{
		listener: listener,
		server: handlers.NewServer(handlers.Options{
			Supervisor: s.supervisor, AdminKey: config.AdminAPIKey, WeakKeyAnywhere: c.Host != "" && !here,
			Debug: debug && here, TrustedProxies: proxies, Log: log,
		}, spa.Handler()),
		cert: cert, work: s.supervisor.Run, log: log,
		ready: func(url string) error {
			if err := lock.Announce(url); err != nil {
				return err
			}
			_, err := fmt.Fprintf(p.out, "Potato training: %s\n", url)
			return err
		},
	}.untilStopped(ctx)
}

// cautions are what the admin should know before anything happens, loudest first.
func cautions(c *project.Config, debug, here bool, host, why string) []string {
	var lines []string
	var remote []string
	for _, b := range c.ModelTraining.Backends {
		switch b.Type {
		case api.BackendSSH, api.BackendSlurm:
			remote = append(remote, b.Name)
		}
	}
	switch {
	case debug && here && len(remote) > 0:
		lines = append(lines, "DEBUG IS ON: everyone with an account on this machine has admin rights and so can run programs here AND ON "+
			strings.Join(remote, ", ")+"; turn it off when others use this machine")
	case debug && here:
		lines = append(lines, "DEBUG IS ON: everyone with an account on this machine has admin rights and so can run programs as this server's account")
	case debug:
		lines = append(lines, "debug is on, but this server listens beyond this machine, so debug gives nobody admin rights; sign in with admin_api_key")
	}
	if weak := weakness(c.AdminAPIKey); weak != "" && host != "" && !here {
		lines = append(lines, "admin_api_key "+weak+" and this server can be reached from other machines: whoever guesses it can run programs here; "+
			"set one of at least 16 characters")
	}
	if why != "" {
		lines = append(lines, why)
	}
	if usesAgents(c) && here {
		lines = append(lines, shutOut+"; "+openToAgents)
	}
	return lines
}

// prefixes reads --trusted-proxy: addresses, or networks as address/bits.
func prefixes(texts []string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil {
			list = append(list, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(t)
		if err != nil {
			return nil, api.Invalidf("bad_proxy", "--trusted-proxy %s is no address or network", t).
				WithHint("give one such as 127.0.0.1 or 10.0.0.0/8")
		}
		list = append(list, p.Masked())
	}
	return list, nil
}
