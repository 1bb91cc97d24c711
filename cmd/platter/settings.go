package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"platter/coord/config"
)

func settingsCommand() *cobra.Command {
	var topic, all, asJSON bool
	cmd := &cobra.Command{
		Use:   "settings [NAME...]",
		Short: "List the settings: default, range, and what becomes of each here",
		Example: `  platter settings                    the broker's settings that have an effect
  platter settings --topic            a topic's
  platter settings --all              also those that Kafka has and Platter ignores or refuses
  platter settings log.retention.ms   one of them`,
		RunE: func(cmd *cobra.Command, args []string) error {
			defs, err := chooseSettings(args, topic, all)
			if err != nil {
				return err
			}
			if asJSON {
				return writeSettingsJSON(cmd.OutOrStdout(), defs, topic)
			}
			return writeSettings(cmd.OutOrStdout(), defs, topic)
		},
	}
	cmd.Flags().BoolVar(&topic, "topic", false, "the settings of topics")
	cmd.Flags().BoolVar(&all, "all", false, "also settings without effect here")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

// chooseSettings finds the named settings, or all of a kind.
func chooseSettings(names []string, topic, all bool) ([]config.Def, error) {
	defs, find := config.BrokerDefs(), config.BrokerDef
	if topic {
		defs, find = config.TopicDefs(), config.Topic
	}
	var out []config.Def
	for _, name := range names {
		d, ok := find(name)
		if !ok {
			return nil, noSetting(name, topic)
		}
		out = append(out, d)
	}
	if len(names) > 0 {
		return out, nil
	}
	for _, d := range defs {
		if all || d.Support == config.Supported {
			out = append(out, d)
		}
	}
	return out, nil
}

// noSetting says that there is no such setting, and where there is one: brokers and topics have their own.
func noSetting(name string, topic bool) error {
	if _, ok := config.Topic(name); ok {
		return usagef("%s is a setting of topics: add --topic", name)
	}
	if _, ok := config.BrokerDef(name); ok && topic {
		return usagef("%s is a setting of brokers: leave --topic out", name)
	}
	return usagef("no setting is called %q", name)
}

// atRunTime says whether a setting can be changed while the broker runs: all of a topic's can.
func atRunTime(d config.Def, topic bool) bool {
	return d.Support == config.Supported && (topic || config.IsDynamic(d.Name))
}

func writeSettings(w io.Writer, defs []config.Def, topic bool) error {
	for _, d := range defs {
		value := d.Default
		if d.Null {
			value = "(not set)"
		}
		line := fmt.Sprintf("%s = %s", d.Name, value)
		if d.Valid != "" {
			line += "   [" + d.Valid + "]"
		}
		doc := strings.ReplaceAll(d.Doc, "`", "")
		if here := supportText(d); here != "" {
			doc += " Here: " + here + "."
		}
		if !topic && atRunTime(d, topic) {
			doc += " Can change at run time."
		}
		if _, err := fmt.Fprintf(w, "%s\n    %s\n", line, doc); err != nil {
			return err
		}
	}
	return nil
}

// supportText is what becomes of a setting that does not do what Kafka says; "" for one that does.
func supportText(d config.Def) string {
	switch d.Support {
	case config.Ignored:
		return "no effect, " + d.Why
	case config.Refused:
		return "refused, " + d.Why
	}
	return ""
}

func writeSettingsJSON(w io.Writer, defs []config.Def, topic bool) error {
	type row struct {
		Name    string  `json:"name"`
		Default *string `json:"default"`
		Valid   string  `json:"valid,omitempty"`
		Doc     string  `json:"doc"`
		Here    string  `json:"here"`
		Dynamic bool    `json:"dynamic"`
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, d := range defs {
		r := row{Name: d.Name, Valid: d.Valid, Doc: d.Doc, Here: supportText(d), Dynamic: atRunTime(d, topic)}
		if r.Here == "" {
			r.Here = "supported"
		}
		if !d.Null {
			r.Default = &d.Default
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
