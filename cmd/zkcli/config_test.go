package zkcli

import "testing"

func TestClientServers(t *testing.T) {
	for in, want := range map[string]string{
		"": " ",
		"server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:observer;2182\nversion=100000000\n": "100000000 0.0.0.0:2181,0.0.0.0:2182",
		"server.1=a:2888:3888\nserver.2=b:1:2;[::1]:9\nrubbish\nversion=7":                                       "7 [::1]:9",
	} {
		if got := clientServers([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
