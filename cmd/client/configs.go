package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Resource is whose settings are meant: topics by name, brokers by id, or with neither all brokers.
type Resource struct {
	Topics  []string
	Brokers []int32
}

// allBrokers is how the settings of all brokers are called in what is shown.
const allBrokers = "all brokers"

// Setting is one change of a setting.
type Setting struct {
	Name, Value string
	Op          SettingOp
}

// SettingOp says what becomes of a setting.
type SettingOp int

// Operations; append and subtract are for settings that are lists.
const (
	Set SettingOp = iota
	Delete
	Append
	Subtract
)

var settingOps = map[SettingOp]kadm.IncrementalOp{
	Set: kadm.SetConfig, Delete: kadm.DeleteConfig, Append: kadm.AppendConfig, Subtract: kadm.SubtractConfig,
}

// String is the change as it is shown.
func (s Setting) String() string {
	return map[SettingOp]string{
		Set: s.Name + "=" + s.Value, Delete: s.Name + " deleted",
		Append: s.Name + " + " + s.Value, Subtract: s.Name + " - " + s.Value,
	}[s.Op]
}

// alteration is what became of one resource.
type alteration struct {
	Name       string   `json:"name"`
	Partitions int32    `json:"partitions,omitempty"`
	Changes    []string `json:"changes,omitempty"`
	DryRun     bool     `json:"dry_run,omitempty"`
	Error      string   `json:"error,omitempty"`
}

func (a alteration) write(w io.Writer) {
	verb := "now has"
	if a.DryRun {
		verb = "could have"
	}
	if a.Partitions > 0 {
		fmt.Fprintf(w, "%s %s %s\n", a.Name, verb, counted(a.Partitions, "partition"))
	}
	verb = ""
	if a.DryRun {
		verb = "could be changed: "
	}
	if len(a.Changes) > 0 {
		fmt.Fprintf(w, "%s: %s%s\n", a.Name, verb, strings.Join(a.Changes, ", "))
	}
}

// AlterConfigs changes settings, all of a resource or none, and says so on w.
func (o Options) AlterConfigs(ctx context.Context, w io.Writer, of Resource, settings []Setting, dry, asJSON bool) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	done, err := alterConfigs(ctx, adm, of, settings, dry)
	return finishAlterations(w, done, asJSON, err)
}

// finishAlterations shows what was done; err is what was not.
func finishAlterations(w io.Writer, done []alteration, asJSON bool, err error) error {
	if asJSON {
		return errors.Join(err, writeJSON(w, done))
	}
	for _, a := range done {
		if a.Error == "" {
			a.write(w)
		}
	}
	return err
}

func alterConfigs(ctx context.Context, adm *kadm.Client, of Resource, settings []Setting, dry bool) ([]alteration, error) {
	var ops []kadm.AlterConfig
	var changes []string
	for _, s := range settings {
		op := kadm.AlterConfig{Op: settingOps[s.Op], Name: s.Name}
		if s.Op != Delete {
			op.Value = kadm.StringPtr(s.Value)
		}
		ops, changes = append(ops, op), append(changes, s.String())
	}
	var answers kadm.AlterConfigsResponses
	var err error
	switch {
	case len(of.Topics) > 0 && dry:
		answers, err = adm.ValidateAlterTopicConfigs(ctx, ops, of.Topics...)
	case len(of.Topics) > 0:
		answers, err = adm.AlterTopicConfigs(ctx, ops, of.Topics...)
	case dry:
		answers, err = adm.ValidateAlterBrokerConfigs(ctx, ops, of.Brokers...)
	default:
		answers, err = adm.AlterBrokerConfigs(ctx, ops, of.Brokers...)
	}
	if err != nil {
		return nil, cause(err)
	}
	slices.SortFunc(answers, func(a, b kadm.AlterConfigsResponse) int { return strings.Compare(a.Name, b.Name) })
	var done []alteration
	var errs []error
	for _, a := range answers {
		d := alteration{Name: resourceName(of, a.Name), Changes: changes, DryRun: dry}
		if a.Err != nil {
			err := topicError(d.Name, a.Err, a.ErrMessage)
			d.Changes, d.Error = nil, err.Error()
			errs = append(errs, err)
		}
		done = append(done, d)
	}
	return done, errors.Join(errs...)
}

func resourceName(of Resource, name string) string {
	switch {
	case len(of.Topics) > 0:
		return name
	case name == "":
		return allBrokers
	}
	return "broker " + name
}

// configsView is a resource's settings as they are shown.
type configsView struct {
	Type    string       `json:"type"`
	Name    string       `json:"name"`
	Configs []configView `json:"configs"`
}

type configView struct {
	Name      string        `json:"name"`
	Value     *string       `json:"value"`
	Source    string        `json:"source"`
	Sensitive bool          `json:"sensitive,omitempty"`
	Synonyms  []synonymView `json:"synonyms,omitempty"`
}

type synonymView struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

// DescribeConfigs shows settings: those that are not at their built-in defaults, or with all every one; only
// those named, when any is.
func (o Options) DescribeConfigs(ctx context.Context, w io.Writer, of Resource, all, asJSON bool, names ...string) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	var answers kadm.ResourceConfigs
	if len(of.Topics) > 0 {
		answers, err = adm.DescribeTopicConfigs(ctx, of.Topics...)
	} else {
		answers, err = adm.DescribeBrokerConfigs(ctx, of.Brokers...)
	}
	if err != nil {
		return cause(err)
	}
	slices.SortFunc(answers, func(a, b kadm.ResourceConfig) int { return strings.Compare(a.Name, b.Name) })
	var views []configsView
	var errs []error
	for _, a := range answers {
		if a.Err != nil {
			errs = append(errs, topicError(resourceName(of, a.Name), a.Err, a.ErrMessage))
			continue
		}
		v := configsView{Type: "broker", Name: a.Name, Configs: []configView{}}
		if len(of.Topics) > 0 {
			v.Type = "topic"
		}
		for _, c := range a.Configs {
			named := slices.Contains(names, c.Key)
			if named || len(names) == 0 && (all || c.Source != kmsg.ConfigSourceDefaultConfig) {
				v.Configs = append(v.Configs, configViewOf(c))
			}
		}
		for _, name := range names {
			if !slices.ContainsFunc(a.Configs, func(c kadm.Config) bool { return c.Key == name }) && (len(of.Topics) > 0 || a.Name != "") {
				errs = append(errs, fmt.Errorf("%s: there is no setting %s", resourceName(of, a.Name), name))
			}
		}
		views = append(views, v)
	}
	if asJSON {
		err = writeJSON(w, views)
	} else {
		err = writeConfigs(w, of, views)
	}
	return errors.Join(append(errs, err)...)
}

func configViewOf(c kadm.Config) configView {
	v := configView{Name: c.Key, Value: c.Value, Source: c.Source.String(), Sensitive: c.Sensitive}
	for _, s := range c.Synonyms {
		v.Synonyms = append(v.Synonyms, synonymView{s.Key, s.Value, s.Source.String()})
	}
	return v
}

// sources are said in plain words.
var sources = map[string]string{
	"DYNAMIC_TOPIC_CONFIG":          "topic",
	"DYNAMIC_BROKER_CONFIG":         "broker, at run time",
	"DYNAMIC_DEFAULT_BROKER_CONFIG": "all brokers, at run time",
	"STATIC_BROKER_CONFIG":          "broker, at start",
	"DEFAULT_CONFIG":                "default",
}

func writeConfigs(w io.Writer, of Resource, views []configsView) error {
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(tw)
		}
		fmt.Fprintln(tw, resourceName(of, v.Name))
		if len(v.Configs) == 0 {
			fmt.Fprintln(tw, "  (nothing is set)")
			continue
		}
		fmt.Fprintln(tw, "  SETTING\tVALUE\tSET BY")
		for _, c := range v.Configs {
			value := "(none)"
			switch {
			case c.Sensitive:
				value = "(hidden)"
			case c.Value != nil:
				value = *c.Value
			}
			source := c.Source
			if plain, ok := sources[source]; ok {
				source = plain
			}
			fmt.Fprintf(tw, "  %s\t%s\t%s\n", c.Name, value, source)
		}
	}
	return tw.Flush()
}

// TopicChange is what topic alter does: a count of partitions (0: stays) and settings.
type TopicChange struct {
	Topics     []string
	Partitions int32
	Settings   []Setting
	DryRun     bool
}

// AlterTopics changes topics, settings first, and says so on w. All are tried.
func (o Options) AlterTopics(ctx context.Context, w io.Writer, c TopicChange, asJSON bool) error {
	adm, err := o.admin(ctx)
	if err != nil {
		return err
	}
	defer adm.Close()
	var done []alteration
	var errs []error
	if len(c.Settings) > 0 {
		some, err := alterConfigs(ctx, adm, Resource{Topics: c.Topics}, c.Settings, c.DryRun)
		done, errs = append(done, some...), append(errs, err)
	}
	if c.Partitions > 0 {
		some, err := growTopics(ctx, adm, c)
		done, errs = append(done, some...), append(errs, err)
	}
	return finishAlterations(w, done, asJSON, errors.Join(errs...))
}

func growTopics(ctx context.Context, adm *kadm.Client, c TopicChange) ([]alteration, error) {
	grow := adm.UpdatePartitions
	if c.DryRun {
		grow = adm.ValidateUpdatePartitions
	}
	answers, err := grow(ctx, int(c.Partitions), c.Topics...)
	if err != nil {
		return nil, cause(err)
	}
	var done []alteration
	var errs []error
	for _, a := range answers.Sorted() {
		d := alteration{Name: a.Topic, Partitions: c.Partitions, DryRun: c.DryRun}
		if a.Err != nil {
			err := topicError(a.Topic, a.Err, a.ErrMessage)
			d.Partitions, d.Error = 0, err.Error()
			errs = append(errs, err)
		}
		done = append(done, d)
	}
	return done, errors.Join(errs...)
}

// ParseBroker reads a broker's id.
func ParseBroker(s string) (int32, error) {
	id, err := strconv.ParseInt(s, 10, 32)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%q is no broker id", s)
	}
	return int32(id), nil
}
