package proc

import (
	"os"
	"strings"
)

// So that one suite runs over every backend and every build:
const (
	// BackendVariable in the environment is io.backend of the brokers that New makes.
	BackendVariable = "PLATTER_TEST_BACKEND"
	// TagsVariable are the build tags, separated by commas, of what Binary builds where the test names none.
	TagsVariable = "PLATTER_TEST_TAGS"
)

func tagsOrUsual(tags []string) []string {
	if v := os.Getenv(TagsVariable); len(tags) == 0 && v != "" {
		return strings.Split(v, ",")
	}
	return tags
}

func setBackend(props map[string]string) {
	if v := os.Getenv(BackendVariable); v != "" {
		props["io.backend"] = v
	}
}
