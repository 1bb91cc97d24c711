// Command platter is a log broker that Kafka clients talk to, and the tools that go with it.
//
// One file a command; each binds flags and hands over to the package that does the work.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
