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
	var topic, coord, all, asJSON bool
	cmd := &cobra.Command{
		Use:   "settings [NAME...]",
		Short: "List the settings: default, range, and what becomes of each here",
		Example: `  platter settings                    the broker's settings that have an effect
  platter settings --topic            a topic's
  platter settings --coord            those of 'platter coord'
  platter settings --all              also those that Kafka has and Platter ignores or refuses
  platter settings log.retention.ms   one of them`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := brokerSettings
			switch {
			case topic && coord:
				return usagef("--topic or --coord, not both")
			case topic:
				kind = topicSettings
			case coord:
				kind = coordSettings
			}
			defs, err := kind.choose(args, all)
			if err != nil {
				return err
			}
			if asJSON {
				return writeSettingsJSON(cmd.OutOrStdout(), defs, kind)
			}
			return writeSettings(cmd.OutOrStdout(), defs, kind)
		},
	}
	cmd.Flags().BoolVar(&topic, "topic", false, "the settings of topics")
	cmd.Flags().BoolVar(&coord, "coord", false, "the settings of the coordinator alone")
	cmd.Flags().BoolVar(&all, "all", false, "also settings without effect here")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

// settingsKind is whose settings are meant.
type settingsKind struct {
	whose string // "topics"
	flag  string // that asks for them; "": none is needed
	list  func() []config.Def
	find  func(string) (config.Def, bool)
}

var (
	brokerSettings = settingsKind{"brokers", "", config.BrokerDefs, config.BrokerDef}
	topicSettings  = settingsKind{"topics", "--topic", config.TopicDefs, config.Topic}
	coordSettings  = settingsKind{"the coordinator", "--coord", config.CoordinatorDefs, config.CoordinatorDef}
)

// choose finds the named settings, or all.
func (k settingsKind) choose(names []string, all bool) ([]config.Def, error) {
	var out []config.Def
	for _, name := range names {
		d, ok := k.find(name)
		if !ok {
			return nil, noSetting(name)
		}
		out = append(out, d)
	}
	if len(names) > 0 {
		return out, nil
	}
	for _, d := range k.list() {
		if all || d.Support == config.Supported {
			out = append(out, d)
		}
	}
	return out, nil
}

// noSetting says that there is no such setting, and where there is one: brokers, topics and the coordinator have
// their own.
func noSetting(name string) error {
	for _, k := range []settingsKind{topicSettings, brokerSettings, coordSettings} {
		if _, ok := k.find(name); !ok {
			continue
		}
		if k.flag == "" {
			return usagef("%s is a setting of %s: leave --topic and --coord out", name, k.whose)
		}
		return usagef("%s is a setting of %s: add %s", name, k.whose, k.flag)
	}
	return usagef("no setting is called %q", name)
}

// atRunTime says whether a setting can be changed while the process runs: all of a topic's can.
func (k settingsKind) atRunTime(d config.Def) bool {
	return d.Support == config.Supported && (k.whose == topicSettings.whose || k.whose == brokerSettings.whose && config.IsDynamic(d.Name))
}

func writeSettings(w io.Writer, defs []config.Def, kind settingsKind) error {
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
		if kind.whose != topicSettings.whose && kind.atRunTime(d) {
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

func writeSettingsJSON(w io.Writer, defs []config.Def, kind settingsKind) error {
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
		r := row{Name: d.Name, Valid: d.Valid, Doc: d.Doc, Here: supportText(d), Dynamic: kind.atRunTime(d)}
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
