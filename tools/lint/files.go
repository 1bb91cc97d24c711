package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

const (
	fileLinesMax     = 600
	fileLinesAim     = 400
	functionLinesMax = 100
)

// checkSize bounds files and functions. Tests may have long functions: tables are long.
func checkSize(f *File) []string {
	var out []string
	if n := strings.Count(string(f.Source), "\n"); n > fileLinesMax {
		out = append(out, f.at(f.AST.Package, "the file has %d lines, more than %d: split it", n, fileLinesMax))
	}
	if f.IsTest() {
		return out
	}
	for _, decl := range f.AST.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := f.line(fn.End()) - f.line(fn.Pos()) + 1; n > functionLinesMax {
			out = append(out, f.at(fn.Pos(), "%s has %d lines, more than %d", fn.Name.Name, n, functionLinesMax))
		}
	}
	return out
}

// osReads and osWrites are the functions of package os that touch files.
var (
	osReads  = []string{"Open", "OpenInRoot", "ReadFile", "ReadDir", "Stat", "Lstat", "DirFS", "Readlink", "OpenRoot"}
	osWrites = []string{"Create", "CreateTemp", "OpenFile", "WriteFile", "Rename", "Remove", "RemoveAll", "Mkdir",
		"MkdirAll", "MkdirTemp", "Truncate", "Symlink", "Link", "Chmod", "Chown", "Chtimes", "CopyFS"}
)

// checkOS keeps one door to the disk: outside io/, files are opened, written and renamed through disk.FS,
// or no test could make them fail. Commands read what their user names; bench and tools write reports
// and set up experiments; tests do what they need.
func checkOS(f *File) []string {
	if f.HelpsTests() || slices.Contains([]string{"io", "tools", "bench"}, f.Layer()) {
		return nil
	}
	alias := importName(f.AST, "os")
	var out []string
	for _, spec := range f.AST.Imports {
		if spec.Path.Value == `"io/ioutil"` {
			out = append(out, f.at(spec.Pos(), "io/ioutil is a way around disk.FS"))
		}
	}
	if alias == "" {
		return out
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); !ok || id.Name != alias || id.Obj != nil {
			return true
		}
		name := sel.Sel.Name
		if slices.Contains(osWrites, name) || (f.Layer() != "cmd" && slices.Contains(osReads, name)) {
			out = append(out, f.at(sel.Pos(), "os.%s: outside io/ files go through disk.FS", name))
		}
		return true
	})
	return out
}

// importName is the name that a file gives an import, "" when it has none of it.
func importName(f *ast.File, path string) string {
	for _, spec := range f.Imports {
		if spec.Path.Value != `"`+path+`"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// checkPlatform: platforms differ by file, never by a branch on runtime.GOOS. Tests, and packages that help
// them, may say what a platform cannot do.
func checkPlatform(f *File) []string {
	if f.HelpsTests() {
		return nil
	}
	var out []string
	branch := func(n ast.Node) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == "runtime" && sel.Sel.Name == "GOOS" {
				out = append(out, f.at(sel.Pos(), "a branch on runtime.GOOS: make a file for each platform"))
			}
			return true
		})
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			branch(n.Cond)
		case *ast.SwitchStmt:
			if n.Tag != nil {
				branch(n.Tag)
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				branch(e)
			}
		}
		return true
	})
	return out
}

var (
	todoWord   = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	todoReason = regexp.MustCompile(`\bTODO(\([^)]+\))?: (\S+\s+){3,}\S+`)
)

// checkTodo: what is left to do says what and why, in a sentence.
func checkTodo(f *File) []string {
	if strings.HasPrefix(f.Path, "tools/lint/") {
		return nil // it speaks of them
	}
	var out []string
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			if todoWord.MatchString(c.Text) && !todoReason.MatchString(c.Text) {
				out = append(out, f.at(c.Pos(), "a TODO without its reason"))
			}
		}
	}
	return out
}

// documented are the layers whose exported names are contracts.
var documented = []string{"io", "engine", "replication", "coord", "net"}

// wellKnown methods say by their names what they do.
var wellKnown = []string{"Error", "Unwrap", "String", "Is", "As", "Len", "Less", "Swap"}

// checkDocs: exported types, functions, methods, constants and variables of the layers have a comment.
// A declaration on the line after a documented one shares its comment.
func checkDocs(f *File) []string {
	if f.IsTest() || !slices.Contains(documented, f.Layer()) {
		return nil
	}
	var out []string
	covered := 0 // line after the last documented declaration
	for _, decl := range f.AST.Decls {
		name, doc := exportedName(decl)
		if name != "" && doc == nil && f.line(decl.Pos()) != covered {
			out = append(out, f.at(decl.Pos(), "exported %s has no comment", name))
		}
		if doc != nil || f.line(decl.Pos()) == covered {
			covered = f.line(decl.End()) + 1
		}
		out = append(out, f.undocumentedSpecs(decl)...)
	}
	return out
}

// exportedName is the name of an exported function, of a method of an exported type, or of an exported
// type declared alone; and its comment.
func exportedName(decl ast.Decl) (string, *ast.CommentGroup) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() {
			return "", d.Doc
		}
		if d.Recv == nil {
			return d.Name.Name, d.Doc
		}
		if recv := receiver(d); !ast.IsExported(recv) || slices.Contains(wellKnown, d.Name.Name) {
			return "", d.Doc
		}
		return receiver(d) + "." + d.Name.Name, d.Doc
	case *ast.GenDecl:
		if d.Lparen.IsValid() || len(d.Specs) != 1 {
			return "", d.Doc
		}
		switch s := d.Specs[0].(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				return s.Name.Name, d.Doc
			}
		case *ast.ValueSpec:
			if s.Names[0].IsExported() && s.Comment == nil {
				return s.Names[0].Name, d.Doc
			}
		}
		return "", d.Doc
	}
	return "", nil
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if idx, ok := t.(*ast.IndexExpr); ok {
		t = idx.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// undocumentedSpecs looks into a group in parentheses: its own comment is enough for all of it, else
// each exported name needs one, before it or on its line.
func (f *File) undocumentedSpecs(decl ast.Decl) []string {
	d, ok := decl.(*ast.GenDecl)
	if !ok || !d.Lparen.IsValid() || d.Doc != nil || d.Tok == token.IMPORT {
		return nil
	}
	var out []string
	covered := 0
	for _, spec := range d.Specs {
		var name *ast.Ident
		var doc, comment *ast.CommentGroup
		switch s := spec.(type) {
		case *ast.TypeSpec:
			name, doc, comment = s.Name, s.Doc, s.Comment
		case *ast.ValueSpec:
			name, doc, comment = s.Names[0], s.Doc, s.Comment
		}
		shared := f.line(spec.Pos()) == covered
		if doc != nil || comment != nil || shared {
			covered = f.line(spec.End()) + 1
			continue
		}
		if name.IsExported() {
			out = append(out, f.at(spec.Pos(), "exported %s has no comment", name.Name))
		}
	}
	return out
}
