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
