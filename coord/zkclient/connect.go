package zkclient

import (
	"fmt"
	"net"
	"strings"
)

// portDefault is ZooKeeper's client port.
const portDefault = "2181"

// ParseConnect takes a connect string apart, as zookeeper.connect and zkCli's -server have it:
// host[:port],host[:port].../chroot. Chroot is "" or "/path".
func ParseConnect(s string) (servers []string, chroot string, err error) {
	hosts := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		hosts, chroot = s[:i], strings.TrimRight(s[i:], "/")
	}
	for h := range strings.SplitSeq(hosts, ",") {
		if h = strings.TrimSpace(h); h == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), portDefault)
		}
		servers = append(servers, h)
	}
	switch {
	case len(servers) == 0:
		return nil, "", fmt.Errorf("zookeeper: %q names no server", s)
	case strings.Contains(chroot, "//"):
		return nil, "", fmt.Errorf("zookeeper: %q: the path %s has an empty part", s, chroot)
	}
	return servers, chroot, nil
}
