package lint

import (
	"slices"
	"strconv"
	"strings"
)

const module = "platter"

// layers from below to above; each may import those below it. bench and tools stand beside.
var layers = []string{"io", "engine", "replication", "coord", "net", "cmd"}

// zooKeeperSide of coord may import io and each other alone, so that the coordinator stays a thing of its own.
var zooKeeperSide = []string{"coord/zk", "coord/tree", "coord/zkserver", "coord/zkclient", "coord/realzk"}

// checkImports keeps the layers, and io/ and net/ free of Go files of their own: such a package would hide
// the standard library's. Tests may use what is above them only from tools.
func checkImports(f *File) []string {
	var out []string
	if p := f.Package(); p == "io" || p == "net" {
		out = append(out, f.at(f.AST.Package, "no Go file stands directly in %s/", p))
	}
	for _, spec := range f.AST.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		to, ours := strings.CutPrefix(path, module+"/")
		if !ours {
			continue
		}
		if f.HelpsTests() && strings.HasPrefix(to, f.Layer()+"/internal/") {
			continue // a layer's own helpers of tests
		}
		if why := forbidden(f.Package(), to); why != "" {
			out = append(out, f.at(spec.Pos(), "must not import %s: %s", to, why))
		}
	}
	return out
}

// forbidden says why a package must not import another, "" when it may.
func forbidden(from, to string) string {
	fromLayer, toLayer := layerOf(from), layerOf(to)
	switch {
	case fromLayer == "tools":
		return ""
	case toLayer == "tools":
		return "nothing imports tools"
	case fromLayer == "bench":
		if toLayer == "cmd" {
			return "bench imports anything but cmd and tools"
		}
		return ""
	case toLayer == "bench":
		if fromLayer != "cmd" {
			return "only cmd imports bench"
		}
		return ""
	}
	low, high := slices.Index(layers, toLayer), slices.Index(layers, fromLayer)
	switch {
	case low < 0:
		return "it is in none of the folders"
	case high < 0:
		return from + " is in none of the folders"
	case low > high:
		return "imports run " + strings.Join(layers, " ← ")
	}
	if slices.Contains(zooKeeperSide, from) && toLayer != "io" && !slices.Contains(zooKeeperSide, to) {
		return "the ZooKeeper side of coord imports io alone"
	}
	return ""
}
