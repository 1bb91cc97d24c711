package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Coordinator is the settings of a coordinator that runs alone, by ZooKeeper's names (tables/coordinator.md).
type Coordinator struct {
	set map[string]string
}

// LoadCoordinator checks properties (a zoo.cfg as a map) with overrides on top. warnings name each setting that is
// unknown or has no effect; err names each that is refused or malformed, one a line.
func LoadCoordinator(props, overrides map[string]string) (c *Coordinator, warnings []string, err error) {
	c = &Coordinator{set: map[string]string{}}
	var errs []error
	for _, m := range []map[string]string{props, overrides} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			warning, err := c.admit(name, strings.TrimSpace(m[name]))
			if err != nil {
				errs = append(errs, err)
			}
			if warning != "" {
				warnings = append(warnings, warning)
			}
		}
	}
	if len(errs) == 0 {
		if err := c.check(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, warnings, errors.Join(errs...)
	}
	return c, warnings, nil
}

// findCoordinator finds a setting by its name, by its name as a Java property, or by the family that it belongs to.
func findCoordinator(name string) (Def, bool) {
	for _, n := range []string{name, strings.TrimPrefix(name, "zookeeper.")} {
		if d, ok := coordTable.find(n); ok {
			return d, true
		}
	}
	name = strings.TrimPrefix(name, "zookeeper.")
	for _, d := range coordTable.list() {
		if family, ok := strings.CutSuffix(d.Name, "*"); ok && strings.HasPrefix(name, family) {
			return d, true
		}
	}
	return Def{}, false
}

func (c *Coordinator) admit(name, value string) (warning string, err error) {
	d, known := findCoordinator(name)
	if !known {
		return fmt.Sprintf("%s is not a setting that ZooKeeper or Platter knows: it has no effect", name), nil
	}
	if d.Null && value == "" {
		return "", nil
	}
	switch d.Support {
	case Ignored: // in whatever form: a family's values are of many kinds
		return fmt.Sprintf("%s has no effect: %s", name, d.Why), nil
	case Refused:
		if !strings.EqualFold(value, d.Default) || d.Null {
			return "", fmt.Errorf("%s cannot be honoured: %s; remove the line to go on without it", name, d.Why)
		}
		return "", nil
	}
	if d.Type == Boolean {
		value = strings.ToLower(value)
	}
	if err := d.Check(value); err != nil {
		shown := value
		if d.Type == Password {
			shown = "(hidden)"
		}
		return "", fmt.Errorf("%s=%s: %w", name, shown, err)
	}
	c.set[d.Name] = value
	return "", nil
}

// check judges what depends on several settings, or is more than a range.
func (c *Coordinator) check() error {
	if c.Value("dataDir") == "" {
		return errors.New("dataDir is empty")
	}
	low, high := c.SessionTimeouts()
	if low > high {
		return fmt.Errorf("minSessionTimeout (%d ms) is more than maxSessionTimeout (%d ms)", low, high)
	}
	if url := c.Value("admin.commandURL"); !strings.HasPrefix(url, "/") || url != "/" && strings.HasSuffix(url, "/") {
		return fmt.Errorf("admin.commandURL=%s: not a path that starts with a slash and ends without one", url)
	}
	if s := c.Value("DigestAuthenticationProvider.superDigest"); s != "" && !strings.Contains(s, ":") {
		return errors.New("DigestAuthenticationProvider.superDigest: not a name, a colon and a hash")
	}
	return nil
}

// Value gives a setting's value, or its default.
func (c *Coordinator) Value(name string) string {
	if v, ok := c.set[name]; ok {
		return v
	}
	d, _ := coordTable.find(name)
	return d.Default
}

// IsSet reports whether a setting was given.
func (c *Coordinator) IsSet(name string) bool {
	_, ok := c.set[name]
	return ok
}

// Int gives a whole number.
func (c *Coordinator) Int(name string) int {
	n, _ := strconv.Atoi(c.Value(name)) // it was checked
	return n
}

// Bool gives a boolean, or what says yes and no.
func (c *Coordinator) Bool(name string) bool {
	v := c.Value(name)
	return v == "true" || v == "yes"
}

// List gives a list's entries.
func (c *Coordinator) List(name string) []string { return splitList(c.Value(name)) }

// SessionTimeouts are the shortest and the longest in milliseconds.
func (c *Coordinator) SessionTimeouts() (low, high int) {
	low, high = c.Int("minSessionTimeout"), c.Int("maxSessionTimeout")
	if low < 0 {
		low = 2 * c.Int("tickTime")
	}
	if high < 0 {
		high = 20 * c.Int("tickTime")
	}
	return low, high
}

// Listener is where clients connect.
func (c *Coordinator) Listener() string {
	return net.JoinHostPort(c.Value("clientPortAddress"), c.Value("clientPort"))
}

// Admin is where the page of commands is served; "": nowhere.
func (c *Coordinator) Admin() string {
	if !c.Bool("admin.enableServer") {
		return ""
	}
	return net.JoinHostPort(c.Value("admin.serverAddress"), c.Value("admin.serverPort"))
}

// AdminAsked reports whether the configuration speaks of the page, so that it cannot be left out.
func (c *Coordinator) AdminAsked() bool {
	return c.IsSet("admin.enableServer") || c.IsSet("admin.serverPort") || c.IsSet("admin.serverAddress")
}

// Text is what was set, a line each, without secrets.
func (c *Coordinator) Text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.set)) {
		value := c.set[name]
		if d, _ := coordTable.find(name); d.Type == Password {
			value = "(hidden)"
		}
		fmt.Fprintf(&b, "%s=%s\n", name, value)
	}
	return b.String()
}
