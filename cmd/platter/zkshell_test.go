package main

import (
	"slices"
	"strings"
	"testing"
)

// printed splits what a shell prints into the commands' lines and the events, which come in between.
func printed(out string) (lines, events []string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Node") || strings.Contains(line, `"event"`) {
			events = append(events, line)
		} else {
			lines = append(lines, line)
		}
	}
	return lines, events
}

// TestZKShellWatches: a watch does not wait in a shell, its events are printed as they come, until it is removed.
func TestZKShellWatches(t *testing.T) {
	onEachZK(t, func(t *testing.T, z zkRun) {
		out, stderr := z.run(1, `create /w one
get -w /w
set /w two
ls -w /w
removewatches /w -c
removewatches /w -c
create /w/a
stat -w /none
create /none
addWatch -m PERSISTENT_RECURSIVE /w
set /w/a x
removewatches /w
set /w/a y
printwatches
`, "--timeout", "60s")
		lines, events := printed(out)
		want := []string{"Created /w", "one", "Created /w/a", "Created /none", "printwatches is on"}
		if !slices.Equal(lines, want) {
			t.Errorf("it prints %q", lines)
		}
		want = []string{"NodeDataChanged /w", "NodeCreated /none", "NodeDataChanged /w/a"}
		if !slices.Equal(events, want) {
			t.Errorf("events %q", events)
		}
		if stderr = strings.TrimSpace(stderr); !strings.HasPrefix(stderr, "platter: zookeeper: removeWatches /w: no such watch\nplatter: a command failed") {
			t.Error(stderr)
		}
		out, _ = z.run(0, "printwatches off\naddWatch /w\nset /w/a z\nprintwatches\n", "--timeout", "60s")
		if out != "printwatches is off\n" {
			t.Errorf("it prints %q", out)
		}
	})
}

// TestZKShellSessions: a session ends and another one begins, and who we are is told to the server in between.
func TestZKShellSessions(t *testing.T) {
	onEachZK(t, func(t *testing.T, z zkRun) {
		out, stderr := z.run(1, `create -e /mine
create -e /more
create /other
getEphemerals
getEphemerals /mo
getAllChildrenNumber /
addauth digest ann:secret
whoami
close
ls /
connect
ls /
whoami
nosuch
addauth digest
`)
		ip := "ip: 127.0.0.1"
		want := []string{
			"Created /mine", "Created /more", "Created /other", "/mine", "/more", "/more", "3", "Auth scheme: User", ip,
			"digest: ann", "other", "Auth scheme: User", ip,
		}
		if got, _ := printed(strings.Replace(out, "digest: ann\n"+ip, ip+"\ndigest: ann", 1)); !slices.Equal(got, want) {
			t.Errorf("it prints %q\nwant %q", got, want)
		}
		for _, s := range []string{"not connected", `knows no command "nosuch"`, "addauth needs"} {
			if !strings.Contains(stderr, s) {
				t.Errorf("no %q in %s", s, stderr)
			}
		}
	})
}

// TestZKQuota: quotas are made, told, changed and taken away as zkCli.sh does; outside of a chroot, where the server
// looks for them.
func TestZKQuota(t *testing.T) {
	onEachZK(t, func(t *testing.T, z zkRun) {
		z.run(0, "", "create", "/q", "12345")
		z.run(0, "", "create", "/q/kid")
		_, stderr := z.run(1, "", "listquota", "/q")
		if stderr != "platter: quota for /q does not exist\n" {
			t.Error(stderr)
		}
		z.want("", "setquota", "-n", "100", "/q")
		z.want("Output quota for /q count=100,bytes=-1=;byteHardLimit=-1;countHardLimit=-1\nOutput stat for /q count=2,bytes=5\n", "listquota", "/q")
		z.want("", "setquota", "-b", "7", "-N", "9", "-B", "11", "/q")
		z.run(0, "", "create", "/q/more", "12")
		z.want(`{"path":"/q","count":100,"bytes":7,"countHardLimit":9,"byteHardLimit":11,"nodesNow":3,"bytesNow":7}`+"\n", "listquota", "--json", "/q")
		for path, below := range map[string]string{"/q/kid": "/q", "/": "/q"} {
			if _, stderr := z.run(1, "", "setquota", "-n", "1", path); !strings.Contains(stderr, "there is a quota above or below") || !strings.Contains(stderr, below) {
				t.Error(stderr)
			}
		}
		z.want("", "delquota", "-n", "-N", "/q")
		z.want("Output quota for /q count=-1,bytes=7=;byteHardLimit=11;countHardLimit=-1\nOutput stat for /q count=3,bytes=7\n", "listquota", "/q")
		z.want("", "delquota", "/q")
		if _, stderr := z.run(1, "", "delquota", "/q"); stderr != "platter: quota for /q does not exist\n" {
			t.Error(stderr)
		}
		if _, stderr := z.run(1, "", "setquota", "-n", "1", "/none"); !strings.Contains(stderr, "no node") {
			t.Error(stderr)
		}
		z.want("", "deleteall", "-b", "2", "/q")
	})
}

func TestZKConfig(t *testing.T) {
	onEachZK(t, func(t *testing.T, z zkRun) {
		z.want("\n", "config")
		z.want(" \n", "config", "-c")
		z.want(`{"path":"/zookeeper/config","data":""}`+"\n", "config", "--json")
		if out, _ := z.run(0, "", "config", "-s"); !strings.Contains(out, "aclVersion = -1\n") {
			t.Error(out)
		}
	})
}
