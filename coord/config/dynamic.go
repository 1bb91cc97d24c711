package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// dynamic are the settings that were changed at run time: this broker's own, and all brokers'. Immutable.
type dynamic struct{ own, all map[string]string }

// dynamicNames are the settings that can change while a broker runs: those that give topics their defaults
// (Kafka's DynamicLogConfig.ReconfigurableConfigs), as far as they have an effect. Kafka's others are
// about thread pools, cleaner, TLS and connection limits, which are not here or set at start.
var dynamicNames = func() map[string]bool {
	names := map[string]bool{}
	for _, d := range topicTable.byName {
		if b, ok := brokerTable.find(d.Synonym); ok && b.Support == Supported {
			names[d.Synonym] = true
		}
	}
	return names
}()

// IsDynamic says whether a broker setting can change while the broker runs.
func IsDynamic(name string) bool { return dynamicNames[name] }

// CheckDynamic validates the settings to be changed at run time, one error naming what is wrong.
func CheckDynamic(values map[string]string) error {
	var fixed []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !IsDynamic(name) {
			fixed = append(fixed, name)
		}
	}
	if len(fixed) > 0 {
		//lint:ignore ST1005 Kafka's words
		return fmt.Errorf("Cannot update these configs dynamically: %s", strings.Join(fixed, ", "))
	}
	b := &Broker{set: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := strings.TrimSpace(values[name])
		d, _ := brokerTable.find(name)
		err := d.Check(v)
		switch {
		case err != nil:
			return fmt.Errorf("%s=%s: %w", name, v, err)
		case d.Type == List && len(splitList(v)) == 0:
			return fmt.Errorf("%s is empty", name)
		}
		b.set[name] = v
		if _, err := b.admit(name, v); err != nil {
			return err
		}
	}
	return b.checkRetention()
}

// SetDynamic replaces what was changed at run time: own is this broker's, all is every broker's. What is
// wrong with them does not count, and is returned: any tool may write there.
func (b *Broker) SetDynamic(own, all map[string]string) []error {
	d := &dynamic{map[string]string{}, map[string]string{}}
	var errs []error
	for _, part := range []struct{ from, to map[string]string }{{own, d.own}, {all, d.all}} {
		for _, name := range slices.Sorted(maps.Keys(part.from)) {
			v := strings.TrimSpace(part.from[name])
			if err := CheckDynamic(map[string]string{name: v}); err != nil {
				errs = append(errs, err)
				continue
			}
			part.to[name] = v
		}
	}
	if len(d.own)+len(d.all) == 0 {
		d = nil // what is asked for often need not look
	}
	b.dynamic.Store(d)
	return errs
}

// changed is the value that a setting was given at run time.
func (b *Broker) changed(name string) (string, Source, bool) {
	d := b.dynamic.Load()
	if d == nil {
		return "", 0, false
	}
	if v, ok := d.own[name]; ok {
		return v, DynamicBroker, true
	}
	v, ok := d.all[name]
	return v, DynamicDefault, ok
}

// Synonym is one value that a setting has or would have, and the name by which it was given.
type Synonym struct {
	Name, Value string
	Source      Source
}

// Synonyms lists the values that a broker setting was given, in the order in which they count, and its default.
func (b *Broker) Synonyms(name string) []Synonym {
	var out []Synonym
	if d := b.dynamic.Load(); d != nil {
		if v, ok := d.own[name]; ok {
			out = append(out, Synonym{name, v, DynamicBroker})
		}
		if v, ok := d.all[name]; ok {
			out = append(out, Synonym{name, v, DynamicDefault})
		}
	}
	chain, ok := chains[name]
	if !ok {
		chain = []link{{name, 1}}
	}
	for _, l := range chain {
		if v, ok := b.given(l.name); ok {
			out = append(out, Synonym{l.name, v, StaticBroker})
		}
	}
	for _, l := range chain {
		if d, ok := brokerTable.find(l.name); ok && !d.Null {
			out = append(out, Synonym{l.name, d.Default, Default})
		}
	}
	return out
}
