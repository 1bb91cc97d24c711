package tree

import "strings"

// special are the nodes that cannot be deleted.
func special(path string) bool {
	switch path {
	case "/", zookeeperPath, quotaPath, configPath:
		return true
	}
	return false
}

// ValidPath reports whether path can name a node (PathUtils.validatePath): absolute, no trailing
// slash, no empty, "." or ".." name, no control or private-use character.
func ValidPath(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	for rest, more := path[1:], true; more; {
		var name string
		if name, rest, more = next(rest); name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, forbidden)
}

func forbidden(r rune) bool {
	switch {
	case r <= 0x1f, r >= 0x7f && r <= 0x9f:
		return true
	case r >= 0xd800 && r <= 0xf8ff:
		return true
	case r >= 0xfff0: // what is above the first plane Java sees as two surrogates
		return true
	}
	return false
}

// lengths counts paths by their length. Whoever looks for the ancestors of a path in a set of paths asks it first: most
// need not be hashed then, which on a very deep path would take long.
type lengths map[int]int

func (l lengths) add(path string) { l[len(path)]++ }

func (l lengths) remove(path string) {
	if l[len(path)]--; l[len(path)] == 0 {
		delete(l, len(path))
	}
}

func (l lengths) has(path string) bool { return l[len(path)] > 0 }
