package profile

import "path/filepath"

// resolve is a path without links, as far as it exists.
func resolve(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for p, rest := abs, ""; ; {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(p)
		if parent == p {
			return abs
		}
		p, rest = parent, filepath.Join(filepath.Base(p), rest)
	}
}
