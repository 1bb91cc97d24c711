package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"platter/coord/config"
)

const root = "../.."

func load(t *testing.T) []*File {
	t.Helper()
	files, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d Go files found from %s", len(files), root)
	}
	return files
}

// TestTree holds every file of the module to the rules.
func TestTree(t *testing.T) {
	files := load(t)
	for _, rule := range Rules {
		t.Run(rule.Name, func(t *testing.T) {
			for _, f := range files {
				for _, finding := range rule.Check(f) {
					t.Errorf("%s:%s", f.Path, finding)
				}
				if n := strings.Count(string(f.Source), "\n"); rule.Name == "size" && n > fileLinesAim {
					t.Logf("%s has %d lines; aim at %d", f.Path, n, fileLinesAim)
				}
			}
		})
	}
}

// TestPackageComments: each package says what it is for.
func TestPackageComments(t *testing.T) {
	comments := map[string]int{}
	for _, f := range load(t) {
		if f.IsTest() {
			continue
		}
		comments[f.Package()] += 0
		if f.AST.Doc != nil && len(strings.TrimSpace(f.AST.Doc.Text())) > 0 {
			comments[f.Package()]++
		}
	}
	for pkg, n := range comments {
		if n == 0 {
			t.Errorf("%s has no package comment", pkg)
		}
	}
}

// TestSettingsAreRead: a setting that is listed as having an effect is named somewhere by the code that
// gives it one. Settings that stand for another are read under that one's name.
func TestSettingsAreRead(t *testing.T) {
	var text strings.Builder
	for _, f := range load(t) {
		if !f.IsTest() {
			text.Write(f.Source)
		}
	}
	for _, d := range slices.Concat(config.BrokerDefs(), config.TopicDefs(), config.CoordinatorDefs()) {
		if d.Support != config.Supported {
			continue
		}
		if feedsTopic(d.Name) || strings.Contains(text.String(), fmt.Sprintf("%q", d.Name)) {
			continue
		}
		if strings.HasPrefix(d.Name, "compression.") {
			continue // compression.X.level is made from the codec's name
		}
		t.Errorf("%s is listed as supported, and no code reads it", d.Name)
	}
}

// feedsTopic reports whether a broker setting is the default of a topic setting, and so read as that.
func feedsTopic(name string) bool {
	return slices.ContainsFunc(config.TopicDefs(), func(d config.Def) bool {
		return d.Synonym == name && d.Support == config.Supported
	})
}

// TestRules shows that each rule finds what it is for: a rule that never failed has proved nothing.
func TestRules(t *testing.T) {
	datadriven.RunTest(t, "testdata/rules.txt", func(t *testing.T, d *datadriven.TestData) string {
		var name, path string
		d.ScanArgs(t, "rule", &name)
		d.ScanArgs(t, "path", &path)
		source := d.Input + "\n"
		if d.HasArg("lines") {
			var n int
			d.ScanArgs(t, "lines", &n)
			source = strings.Replace(source, "FILL\n", strings.Repeat("\tx++\n", n), 1)
		}
		f, err := Parse(path, []byte(source))
		if err != nil {
			return err.Error() + "\n"
		}
		i := slices.IndexFunc(Rules, func(r Rule) bool { return r.Name == name })
		findings := Rules[i].Check(f)
		if len(findings) == 0 {
			return "ok\n"
		}
		return strings.Join(findings, "\n") + "\n"
	})
}

// TestModuleFiles: what a fresh clone needs is there.
func TestModuleFiles(t *testing.T) {
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "LICENSE", "Makefile", ".gitignore", ".ci/run"} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == ".ci/run" && info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed", name)
		}
	}
}
