package broker

import (
	"net"
	"testing"
)

func TestShareOut(t *testing.T) {
	for _, c := range []struct{ limit, files, connections, wantFiles, wantConnections int }{
		{1024, 0, 1 << 30, 480, 480},
		{1024, 0, 100, 480, 100},
		{1024, 100, 1 << 30, 100, 860},
		{1024, 5000, 1 << 30, 928, 32},
		{1 << 20, 0, 1 << 30, 1 << 17, 1<<20 - 64 - 1<<17},
		{10, 0, 1 << 30, 32, 32},
	} {
		got := shareOut(c.limit, c.files, c.connections)
		if got != (budget{c.wantFiles, c.wantConnections}) {
			t.Errorf("limit %d, files %d, connections %d: %+v", c.limit, c.files, c.connections, got)
		}
	}
}

func TestReachable(t *testing.T) {
	for listening, want := range map[string]string{
		"[::]:9092":      "127.0.0.1:9092",
		"0.0.0.0:19092":  "127.0.0.1:19092",
		"10.1.2.3:9092":  "10.1.2.3:9092",
		"[fe80::1]:9092": "[fe80::1]:9092",
	} {
		a, err := net.ResolveTCPAddr("tcp", listening)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(a); got != want {
			t.Errorf("%s is reached at %s, want %s", listening, got, want)
		}
	}
}
