package main

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"platter/coord/config"
)

// processFlags are the command line of whatever runs until it is told to stop.
type processFlags struct {
	config    string
	set       []string
	logLevel  string
	logFormat string
}

// properties reads the file that --config names.
func (f processFlags) properties() (map[string]string, error) {
	if f.config == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.config)
	if err != nil {
		return nil, usageError{err}
	}
	props, err := config.ParseProperties(text)
	if err != nil {
		return nil, usagef("%s: %v", f.config, err)
	}
	return props, nil
}

// settings are those of --set.
func (f processFlags) settings() (map[string]string, error) {
	out := map[string]string{}
	for _, s := range f.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usagef("--set %s: not name=value", s)
		}
		out[strings.TrimSpace(name)] = value
	}
	return out, nil
}

func (f processFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usagef("--log-level %s: not one of debug, info, warn, error", f.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, usagef("--log-format %s: not one of text, json", f.logFormat)
}
