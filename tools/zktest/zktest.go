// Package zktest gives tests their servers: ours in this process, and Apache's where it is installed.
package zktest

import (
	"log/slog"
	"testing"

	"platter/coord/realzk"
	"platter/coord/zkserver"
	"platter/io/clock"
	"platter/io/memdisk"
)

// Ours starts our server over a disk in memory and returns its address; it ends with the test. All four-letter
// words are allowed.
func Ours(t testing.TB, c zkserver.Config) string {
	t.Helper()
	if c.FS == nil {
		c.FS = memdisk.New(memdisk.Options{})
	}
	if c.Dir == "" {
		c.Dir = "/zk"
	}
	c.FourLetterWords = []string{"*"}
	c.Pollers = 1
	c.Clock = clock.Real{}
	c.Log = slog.New(slog.DiscardHandler)
	s, err := zkserver.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("the server's end: %v", err)
		}
	})
	return s.Addr().String()
}

// Real starts Apache's server, which ends with the test; where there is none the test is skipped by name. All
// four-letter words are allowed.
func Real(t testing.TB, o realzk.Options) *realzk.Server {
	t.Helper()
	if o.PortFrom == 0 {
		o.PortFrom = 21600
	}
	o.Lines = append(o.Lines, "4lw.commands.whitelist=*")
	s, err := realzk.Start(o)
	if err != nil {
		t.Skipf("Apache ZooKeeper: %v", err)
	}
	t.Cleanup(s.Stop)
	return s
}
