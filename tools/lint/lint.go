// Package lint is the project's own rules, kept by a test: which way imports run, where files may be
// touched, how long a file and a function may get, and what must be documented.
//
// A rule is a function from one parsed file to what it finds wrong there. The rules themselves are tested by
// the snippets in testdata, each of which breaks one.
package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is one Go file of the module. Path is relative to the module's root, with slashes.
type File struct {
	Path   string
	Source []byte
	Fset   *token.FileSet
	AST    *ast.File
}

// Rule finds what is wrong with a file; each finding is one line, without the file's name.
type Rule struct {
	Name  string
	Check func(*File) []string
}

// Rules are all rules that look at one file.
var Rules = []Rule{
	{"gofmt", checkFormat},
	{"imports", checkImports},
	{"os", checkOS},
	{"size", checkSize},
	{"platform", checkPlatform},
	{"todo", checkTodo},
	{"docs", checkDocs},
}

// Parse reads one file.
func Parse(path string, source []byte) (*File, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &File{Path: path, Source: source, Fset: fset, AST: f}, nil
}

// Load parses every Go file under root, but for what is ignored by Go and by git.
func Load(root string) ([]*File, error) {
	var files []*File
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			hidden := path != root && (name[0] == '.' || name[0] == '_')
			rel, _ := filepath.Rel(root, path)
			if hidden || name == "testdata" || rel == "bin" || rel == "data" || rel == "results" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := Parse(filepath.ToSlash(rel), source)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// IsTest reports whether the file is only built for tests.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// HelpsTests reports whether the file is a test, or a package for tests.
func (f *File) HelpsTests() bool {
	return f.IsTest() || strings.HasSuffix(f.AST.Name.Name, "test") || importName(f.AST, "testing") != ""
}

// Package is the folder of the file, "io/disk".
func (f *File) Package() string {
	i := strings.LastIndexByte(f.Path, '/')
	if i < 0 {
		return ""
	}
	return f.Path[:i]
}

// Layer is the first folder, "io".
func (f *File) Layer() string { return layerOf(f.Path) }

func layerOf(path string) string {
	layer, _, _ := strings.Cut(path, "/")
	return layer
}

func (f *File) line(p token.Pos) int { return f.Fset.Position(p).Line }

func (f *File) at(p token.Pos, msg string, args ...any) string {
	return fmt.Sprintf("%d: %s", f.line(p), fmt.Sprintf(msg, args...))
}

func checkFormat(f *File) []string {
	want, err := format.Source(f.Source)
	if err != nil {
		return []string{err.Error()}
	}
	if !bytes.Equal(want, f.Source) {
		return []string{"not formatted: run gofmt -w"}
	}
	return nil
}
