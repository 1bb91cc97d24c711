//go:build !linux

package frame

import "net"

// cork does nothing: what other systems have for it differs in when it lets go.
func cork(net.Conn, bool) bool { return false }
