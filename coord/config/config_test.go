package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTranscripts runs the scripts in testdata/*.txt:
//
//	load [file=NAME]       a server.properties; prints what was warned of and refused, else "ok"
//	show                   names, one a line: effective value and source
//	topic                  a topic's overrides; prints what is wrong with them, else "ok"
//	log                    the engine's settings for the last topic, in Go's form
//	topic-show             names: effective value and source for the last topic
//	coordinator            a zoo.cfg, likewise; then what was set, and where it listens
//	listeners              listeners, advertised listeners, the brokers' one
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var b *Broker
		var overrides map[string]string
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "load":
				var out string
				b, out = load(t, d)
				return out
			case "coordinator":
				return loadCoordinator(t, d)
			case "show":
				return show(d.Input, b.Value)
			case "topic":
				overrides = parse(t, d.Input)
				if err := CheckTopic("t", overrides); err != nil {
					return err.Error() + "\n"
				}
				return "ok\n"
			case "topic-show":
				return show(d.Input, func(name string) (string, Source) { return b.TopicValue(name, overrides) })
			case "log":
				text := fmt.Sprintf("%+v", b.Log(overrides))
				return strings.ReplaceAll(strings.Trim(text, "{}"), " ", "\n") + "\n"
			case "listeners":
				return fmt.Sprintf("%v\n%v\n%s\n", b.Listeners(), b.Advertised(), b.InterBroker())
			}
			return "unknown command\n"
		})
	})
}

func loadCoordinator(t *testing.T, d *datadriven.TestData) string {
	c, warnings, err := LoadCoordinator(parse(t, input(t, d)), nil)
	out := told(warnings, err)
	if err != nil {
		return out
	}
	low, high := c.SessionTimeouts()
	return fmt.Sprintf("%s%slistens on %s, admin page %q, timeouts %d..%d ms\n", out, c.Text(), c.Listener(), c.Admin(), low, high)
}

// input is a script's text, or that of the file that it names.
func input(t *testing.T, d *datadriven.TestData) string {
	if !d.HasArg("file") {
		return d.Input
	}
	var name string
	d.ScanArgs(t, "file", &name)
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// told is what was warned of and refused, a line each.
func told(warnings []string, err error) string {
	var out strings.Builder
	for _, w := range warnings {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(&out, "error: %s\n", line)
		}
	}
	return out.String()
}

func load(t *testing.T, d *datadriven.TestData) (*Broker, string) {
	var set map[string]string
	if d.HasArg("set") {
		var pair string
		d.ScanArgs(t, "set", &pair)
		k, v, _ := strings.Cut(pair, ":")
		set = map[string]string{k: v}
	}
	b, warnings, err := Load(parse(t, input(t, d)), set)
	out := told(warnings, err)
	if err != nil {
		return nil, out
	}
	return b, out + "ok\n"
}

func parse(t *testing.T, text string) map[string]string {
	m, err := ParseProperties([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var sourceNames = map[Source]string{TopicConfig: "topic", StaticBroker: "server.properties", Default: "default"}

func show(names string, value func(string) (string, Source)) string {
	var out strings.Builder
	for _, name := range strings.Fields(names) {
		v, src := value(name)
		fmt.Fprintf(&out, "%s=%s (%s)\n", name, v, sourceNames[src])
	}
	return out.String()
}

// TestTables: what the tables say of themselves holds together.
func TestTables(t *testing.T) {
	for _, kind := range []struct {
		name string
		defs []Def
		want int // Kafka 3.9's number of settings, at least
	}{{"topic", TopicDefs(), 36}, {"broker", BrokerDefs(), 328}, {"coordinator", CoordinatorDefs(), 100}} {
		if len(kind.defs) < kind.want {
			t.Errorf("%d %s settings, Kafka has %d", len(kind.defs), kind.name, kind.want)
		}
		for _, d := range kind.defs {
			if err := d.Check(d.Default); err != nil && !d.Null {
				t.Errorf("%s: the default %q does not pass the check: %v", d.Name, d.Default, err)
			}
			if d.Doc == "" || !strings.HasSuffix(d.Doc, ".") {
				t.Errorf("%s: no sentence says what it is", d.Name)
			}
			if (d.Support == Supported) != (d.Why == "") {
				t.Errorf("%s: a reason goes with what is not supported, and only with that", d.Name)
			}
		}
	}
	for _, d := range TopicDefs() {
		if d.Synonym == "" {
			continue
		}
		s, ok := BrokerDef(d.Synonym)
		if !ok {
			t.Errorf("%s: its broker setting %s is not there", d.Name, d.Synonym)
		} else if s.Type != d.Type {
			t.Errorf("%s and %s differ in type", d.Name, d.Synonym)
		}
	}
}
