package zkserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"platter/coord/realzk"
	"platter/io/memdisk"
)

// superSecret authenticates as super.
const superSecret = "super:secret"

var apacheRuns int

// TestAsApache runs the scripts of testdata/apache on our server, and where there is one on a real ZooKeeper: what
// is written there is the answer of both. Zxids are relative to the making of ROOT.
//
//	send PEER               requests, pipelined, one a line; prints the replies, then what each peer was told
func TestAsApache(t *testing.T) {
	s := start(t, Config{
		FS: memdisk.New(memdisk.Options{}), Dir: "/zk", TickMs: realzk.TickMs, ExtendedTypes: true, EnforceQuota: true,
		SuperDigest: digestID([]byte(superSecret)),
	})
	run := func(t *testing.T, addr string) {
		datadriven.Walk(t, "testdata/apache", func(t *testing.T, path string) {
			apacheRuns++ // the real server outlives a repeated test
			w := newWorld(t, addr, fmt.Sprint("/asapache", apacheRuns))
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				return w.step(t, d.CmdArgs[0].Key, strings.Split(d.Input, "\n"))
			})
			w.close(t)
		})
	}
	t.Run("ours", func(t *testing.T) { run(t, s.Addr().String()) })
	t.Run("Apache's", func(t *testing.T) {
		real, err := realzk.Start(realzk.Options{TickMs: realzk.TickMs, Lines: []string{
			"extendedTypesEnabled=true", "enforceQuota=true",
			"DigestAuthenticationProvider.superDigest=" + digestID([]byte(superSecret)),
		}})
		if err != nil {
			t.Skipf("Apache ZooKeeper: %v", err)
		}
		t.Cleanup(real.Stop)
		run(t, real.Addr)
	})
}
