package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/magiconair/properties"
)

// ParseProperties reads the text of a server.properties: Java's format, UTF-8, the last of several values
// counts. Unlike the library's default, ${name} is plain text, as it is for Kafka.
func ParseProperties(text []byte) (map[string]string, error) {
	l := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := l.LoadBytes(text)
	if err != nil {
		return nil, err
	}
	return p.Map(), nil
}

// Load checks properties (a server.properties as a map) with overrides on top. warnings name each
// setting that is unknown or has no effect; err names each that is refused or malformed, one a line.
func Load(props, overrides map[string]string) (b *Broker, warnings []string, err error) {
	b = &Broker{set: map[string]string{}}
	for _, m := range []map[string]string{props, overrides} {
		for k, v := range m {
			b.set[k] = strings.TrimSpace(v)
		}
	}
	var errs []error
	if err := kraftError(b.set); err != nil {
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(b.set)) {
		warning, err := b.admit(name, b.set[name])
		if err != nil {
			errs = append(errs, err)
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	// What depends on several settings makes sense only once each is well-formed.
	if len(errs) == 0 {
		for _, check := range []func() error{b.checkIdentity, b.checkDirs, b.checkZooKeeper, b.checkRetention, b.checkRequests, b.checkGroups, b.readListeners} {
			if err := check(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(errs) > 0 {
		return nil, warnings, errors.Join(errs...)
	}
	return b, warnings, nil
}

// admit checks one setting by itself. One that is unknown does not stay in b.set; one without effect does, to
// be shown to who asks for the broker's settings.
func (b *Broker) admit(name, value string) (warning string, err error) {
	d, known := brokerTable.find(name)
	if !known {
		delete(b.set, name)
		return admitUnknown(name)
	}
	if d.Null && value == "" {
		delete(b.set, name)
		return "", nil
	}
	if err := d.Check(value); err != nil {
		shown := value
		if d.Type == Password {
			shown = "(hidden)"
		}
		return "", fmt.Errorf("%s=%s: %w", name, shown, err)
	}
	switch {
	case d.Support == Ignored:
		return fmt.Sprintf("%s has no effect: %s", name, d.Why), nil
	case d.Support == Refused && value != d.Default && d.Why != whyKRaft:
		return "", fmt.Errorf("%s cannot be honoured: %s; remove the line to go on without it", name, d.Why)
	case name == "log.cleanup.policy" && slices.Contains(splitList(value), "compact"):
		return "", fmt.Errorf("log.cleanup.policy=%s cannot be honoured: %s", value, whyNoCompaction)
	}
	return "", nil
}

// admitUnknown judges what is not in the tables: a listener's own setting is as good as the setting it
// is for; what sounds like security is never waved through.
func admitUnknown(name string) (warning string, err error) {
	bare := name
	if rest, ok := strings.CutPrefix(name, "listener.name."); ok {
		if i := strings.IndexByte(rest, '.'); i >= 0 {
			bare = rest[i+1:]
		}
		// SASL settings of a listener also carry the mechanism: listener.name.X.scram-sha-256.sasl.…
		if d, ok := brokerTable.find(bare); ok && d.Support != Refused {
			return fmt.Sprintf("%s has no effect: settings of a single listener are not served yet, only %s for all", name, bare), nil
		}
	}
	for _, word := range []string{"sasl.", "ssl.", "authorizer.", "acl."} {
		if strings.HasPrefix(bare, word) || strings.Contains(bare, "."+word) {
			return "", fmt.Errorf("%s cannot be honoured: there is no TLS, SASL or authorizer yet; remove the line to go on without it", name)
		}
	}
	if d, ok := topicTable.find(name); ok {
		return fmt.Sprintf("%s is a setting of topics; a broker's default for it is %s: it has no effect here", name, d.Synonym), nil
	}
	return fmt.Sprintf("%s is not a setting that Kafka or Platter knows: it has no effect", name), nil
}

const (
	whyKRaft        = "KRaft"
	whyNoCompaction = "there is no compaction yet, so the log would grow for ever; use delete"
)

// kraftError names all lines that make a configuration a KRaft one, and what to put in their place.
func kraftError(set map[string]string) error {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		d, ok := brokerTable.find(name)
		if !ok || d.Why != whyKRaft || set[name] == d.Default {
			continue
		}
		lines = append(lines, "remove "+name+"="+set[name])
	}
	if len(lines) == 0 {
		return nil
	}
	if id, ok := set["node.id"]; ok {
		lines = append(lines, "write broker.id="+id+" for node.id="+id)
	}
	for _, name := range []string{"listeners", "advertised.listeners"} {
		var keep []string
		for _, l := range splitList(set[name]) {
			if !strings.HasPrefix(strings.ToUpper(l), "CONTROLLER:") {
				keep = append(keep, l)
			}
		}
		if kept := strings.Join(keep, ","); kept != strings.Join(splitList(set[name]), ",") {
			lines = append(lines, fmt.Sprintf("write %s=%s (without the controller's)", name, kept))
		}
	}
	if _, ok := set["zookeeper.connect"]; !ok {
		lines = append(lines, "leave zookeeper.connect out for the coordinator inside Platter, or name your ZooKeeper servers")
	}
	return fmt.Errorf("this is a KRaft configuration, and Platter coordinates over ZooKeeper's protocol:\n  %s", strings.Join(lines, "\n  "))
}
