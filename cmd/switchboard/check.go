package main

import (
	"fmt"

	"switchboard/internal/auth"
	"switchboard/internal/config"
)

type checkCommand struct {
	Config string `help:"Configuration file." placeholder:"FILE"`
}

// Run loads the configuration as serve would, and says what it found.
func (c *checkCommand) Run(p process) error {
	cfg, err := config.Load(config.Source{Path: c.Config, Getenv: p.getenv, Environ: p.environ})
	if err != nil {
		return &configError{err}
	}
	for _, warning := range cfg.Warnings {
		fmt.Fprintln(p.stderr, "warning:", warning)
	}
	models := 0
	for _, one := range cfg.Providers {
		models += len(one.Models)
	}
	fmt.Fprintf(p.stdout, "ok: %d providers, %d models, %d virtual models, auth %s, listen %s\n",
		len(cfg.Providers), models, len(cfg.Virtuals), cfg.Auth.Mode, cfg.Listen)
	return nil
}

type keyNewCommand struct{}

// Run prints a new client key once and what the configuration needs of it.
func (keyNewCommand) Run(p process) error {
	text, digest, err := auth.NewKey()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "key     %s\nsha256  %x\n", text, digest)
	fmt.Fprintln(p.stderr, "The key is not kept anywhere. Give it to the client; put the digest under auth.keys.")
	return nil
}
