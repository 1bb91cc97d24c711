package config

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed tables/*.md
var tableFiles embed.FS

var (
	topicTable  = mustTable("topic")
	coordTable  = mustTable("coordinator")
	brokerTable = mustTable("log", "net", "cluster", "groups", "security", "elsewhere", "platter")
)

// table is the settings of one kind.
type table struct {
	byName map[string]Def
	names  []string // sorted
}

func (t *table) find(name string) (Def, bool) {
	d, ok := t.byName[name]
	return d, ok
}

func (t *table) list() []Def {
	defs := make([]Def, len(t.names))
	for i, n := range t.names {
		defs[i] = t.byName[n]
	}
	return defs
}

// mustTable reads the built-in tables; a fault in them is a bug, found by any test.
func mustTable(files ...string) *table {
	t := &table{byName: map[string]Def{}}
	for _, f := range files {
		text, err := tableFiles.ReadFile("tables/" + f + ".md")
		if err != nil {
			panic(err)
		}
		defs, err := parseTable(string(text))
		if err != nil {
			panic(fmt.Sprintf("tables/%s.md: %v", f, err))
		}
		for _, d := range defs {
			if _, twice := t.byName[d.Name]; twice {
				panic(fmt.Sprintf("tables/%s.md: %s stands there twice", f, d.Name))
			}
			t.byName[d.Name] = d
			t.names = append(t.names, d.Name)
		}
	}
	slices.Sort(t.names)
	return t
}

// parseTable reads one Markdown table. The columns are named by its first row.
func parseTable(text string) ([]Def, error) {
	var columns []string
	var defs []Def
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		if columns == nil {
			columns = cells
			continue
		}
		if len(cells) != len(columns) {
			return nil, fmt.Errorf("line %d: %d cells, not %d", i+1, len(cells), len(columns))
		}
		row := map[string]string{}
		for j, c := range columns {
			row[c] = strings.TrimSpace(cells[j])
		}
		d, err := rowDef(row)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		defs = append(defs, d)
	}
	return defs, nil
}

var typeNames = map[string]Type{
	"boolean": Boolean, "string": String, "int": Int, "short": Short, "long": Long,
	"double": Double, "list": List, "class": Class, "password": Password,
}

func rowDef(row map[string]string) (Def, error) {
	d := Def{
		Name: row["name"], Type: typeNames[row["type"]], Default: row["default"],
		Valid: row["valid"], Doc: row["what it is"], Synonym: row["from"],
	}
	if d.Type == 0 {
		return Def{}, fmt.Errorf("%s: unknown type %q", d.Name, row["type"])
	}
	if d.Default == "null" {
		d.Default, d.Null = "", true
	}
	here, why, _ := strings.Cut(row["here"], ": ")
	d.Why = why
	switch here {
	case "yes":
		d.Support = Supported
	case "no effect":
		d.Support = Ignored
	case "refused":
		d.Support = Refused
	default:
		return Def{}, fmt.Errorf("%s: unknown class %q", d.Name, here)
	}
	inRange, err := parseValid(d.Type, d.Valid)
	if err != nil {
		return Def{}, fmt.Errorf("%s: %w", d.Name, err)
	}
	t := d.Type
	d.Check = func(value string) error { return checkValue(t, inRange, value) }
	return d, nil
}
