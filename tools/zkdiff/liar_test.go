package main

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"platter/tools/zkwire"
)

// liar stands before a server and turns every -110 (the node exists) of a reply into -103.
func liar(t *testing.T, addr string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for client, err := ln.Accept(); err == nil; client, err = ln.Accept() {
			go lie(client, addr)
		}
	}()
	return ln.Addr().String()
}

func lie(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	}()
	for hello := true; ; hello = false {
		p, err := zkwire.ReadFrame(server)
		if err != nil {
			return
		}
		const at, header = 12, 16 // the reply's error
		const nodeExists, badVersion = 0xffffff92, 0xffffff99
		if !hello && len(p) == header && binary.BigEndian.Uint32(p[at:]) == nodeExists {
			binary.BigEndian.PutUint32(p[at:], badVersion)
		}
		if _, err := client.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...)); err != nil {
			return
		}
	}
}
