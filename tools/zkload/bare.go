package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"platter/tools/zkwire"
)

// bareReplyBytes is a setData's answer: header and Stat.
const bareReplyBytes = 16 + 68

// bareLog is the one file of the bare program, and who watches.
type bareLog struct {
	mu       sync.Mutex
	f        *os.File
	watchers []net.Conn
}

// bare is the loop that no durable server is asked to beat: read a request, append its bytes to a file, fdatasync,
// write an event to everybody who has asked for one with a read, whatever the node, answer. It speaks as much of the
// protocol as the load needs, and prints its address.
func bare(o *options) error {
	f, err := os.Create(filepath.Join(o.dir, "bare.log"))
	if err != nil {
		return err
	}
	defer f.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ln.Close()
	}()
	log := &bareLog{f: f}
	for {
		nc, err := ln.Accept()
		if err != nil {
			return err
		}
		go log.answer(nc)
	}
}

func (l *bareLog) keep(p []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.f.Write(p); err != nil {
		return err
	}
	return syncData(l.f)
}

func (l *bareLog) watch(nc net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(l.watchers, nc)
}

// fire writes an event to all who watch. One that is gone ends by itself.
func (l *bareLog) fire() {
	l.mu.Lock()
	all := l.watchers
	l.watchers = nil
	l.mu.Unlock()
	event := zkwire.Enc{B: make([]byte, 4)}
	event.I32(zkwire.XidEvent)
	event.I64(-1)
	event.I32(0)
	event.I32(3) // NodeDataChanged
	event.I32(3) // SyncConnected
	event.Str("/")
	event.B[3] = byte(len(event.B) - 4)
	for _, nc := range all {
		_, _ = nc.Write(event.B)
	}
}

// answer serves one connection. Any failure ends it, and the load with it.
func (l *bareLog) answer(nc net.Conn) {
	defer nc.Close()
	hello := zkwire.Enc{B: make([]byte, 4)}
	hello.I32(0)
	hello.I32(30_000)
	hello.I64(1)
	hello.Buf(make([]byte, 16))
	hello.Bool(false)
	hello.B[3] = byte(len(hello.B) - 4)
	r := bufio.NewReader(nc)
	if _, err := zkwire.ReadFrame(r); err != nil {
		return
	}
	if _, err := nc.Write(hello.B); err != nil {
		return
	}
	for {
		p, err := zkwire.ReadFrame(r)
		if err != nil || len(p) < 8 {
			return
		}
		reply := make([]byte, 4+bareReplyBytes)
		reply[3] = bareReplyBytes
		copy(reply[4:], p[:4]) // xid
		switch op := int32(binary.BigEndian.Uint32(p[4:])); op {
		case zkwire.OpCreate, zkwire.OpSetData:
			if err := l.keep(p); err != nil {
				fmt.Fprintln(os.Stderr, "bare:", err)
				return
			}
			if op == zkwire.OpSetData {
				l.fire()
			}
		case zkwire.OpGetData:
			if p[len(p)-1] == 1 {
				l.watch(nc)
			}
		}
		if _, err := nc.Write(reply); err != nil {
			return
		}
	}
}
