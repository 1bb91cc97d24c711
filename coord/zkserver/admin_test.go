package zkserver

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"platter/coord/zk"
	"platter/io/memdisk"
)

func adminServer(t *testing.T) *Server {
	return start(t, Config{
		FS: memdisk.New(memdisk.Options{}), Dir: "/zk", AdminAddr: "127.0.0.1:0", FourLetterWords: []string{"*"}, Initial: "a=b\n",
	})
}

func get(t *testing.T, s *Server, path string) (status int, body string) {
	t.Helper()
	r, err := http.Get("http://" + s.AdminAddr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// fields gives an answer's names in their order, and its values.
func fields(t *testing.T, s *Server, command string) ([]string, map[string]any) {
	t.Helper()
	_, body := get(t, s, "/commands/"+command)
	values := map[string]any{}
	if err := json.Unmarshal([]byte(body), &values); err != nil {
		t.Fatal(command, err, body)
	}
	var names []string
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, `  "`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			names = append(names, name)
		}
	}
	return names, values
}

// TestAdmin: the page has all commands, and the fields of each are those that a real 3.8.0 printed.
func TestAdmin(t *testing.T) {
	s := adminServer(t)
	p := open(t, s, 10_000)
	p.call(t, zk.OpCreate, createBody("/e", []byte("x"), zk.FlagEphemeral))
	p.call(t, zk.OpGetData, pathBody("/e", true))
	stats := "version read_only server_stats client_response node_count"
	for command, want := range map[string]string{
		"configuration":         "client_port data_dir data_log_dir tick_time max_client_cnxns min_session_timeout max_session_timeout server_id client_port_listen_backlog",
		"conf":                  "client_port data_dir data_log_dir tick_time max_client_cnxns min_session_timeout max_session_timeout server_id client_port_listen_backlog",
		"connection_stat_reset": "", "connections": "connections secure_connections", "dirs": "datadir_size logdir_size",
		"dump": "expiry_time_to_session_ids session_id_to_ephemeral_paths", "get_trace_mask": "tracemask",
		"set_trace_mask?traceMask=7": "tracemask", "hash": "digests", "initial_configuration": "initial_configuration",
		"is_read_only": "read_only", "last_snapshot": "zxid timestamp", "observers": "synced_observers observers",
		"ruok": "", "server_stats": stats, "stats": stats + " connections secure_connections", "stat_reset": "",
		"voting_view": "current_config", "watch_summary": "num_connections num_paths num_total_watches",
		"watches": "session_id_to_watched_paths", "watches_by_path": "path_to_session_ids", "zabstate": "voting zabstate",
	} {
		names, values := fields(t, s, command)
		if got := strings.Join(names, " "); got != strings.TrimSpace(want+" command error") || values["error"] != nil {
			t.Errorf("%s has the fields %q (%v)", command, got, values["error"])
		}
	}
	for command, want := range map[string]string{
		"nosuch": "Unknown command: nosuch", "leader": "server is not initialized",
		"set_trace_mask": "setTraceMask requires long traceMask argument",
	} {
		if _, values := fields(t, s, command); values["error"] != want {
			t.Errorf("%s: %v", command, values["error"])
		}
	}
	if _, v := fields(t, s, "watches_by_path"); len(v["path_to_session_ids"].(map[string]any)["/e"].([]any)) != 1 {
		t.Errorf("watches by path: %v", v)
	}
	if names, _ := fields(t, s, "monitor"); len(names) < 400 || !slices.Contains(names, "avg_e_read_per_namespace") {
		t.Errorf("monitor has %d fields", len(names))
	}
	if _, body := get(t, s, "/commands/ruok"); body != "{\n  \"command\" : \"ruok\",\n  \"error\" : null\n}" {
		t.Errorf("ruok: %q", body)
	}
	for path, want := range map[string]int{"/": 404, "/commandsx": 404, "/commands": 200, "/commands/": 200, "/commands/ruok": 200} {
		if status, _ := get(t, s, path); status != want {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if _, list := get(t, s, "/commands"); strings.Count(list, "<a href=\"/commands/") != len(adminCommands) {
		t.Errorf("the list of commands: %s", list)
	}
	if r, err := http.Post("http://"+s.AdminAddr().String()+"/commands/ruok", "text/plain", nil); err != nil || r.StatusCode != 405 {
		t.Errorf("POST: %v, %v", r, err)
	}
}

func word(t *testing.T, s *Server, w string) string {
	t.Helper()
	p := dialPeer(t, s.Addr())
	p.nc.Write([]byte(w))
	b, err := io.ReadAll(p.nc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestWords: what the words tell is so, and the resets reset.
func TestWords(t *testing.T) {
	s := adminServer(t)
	p := open(t, s, 10_000)
	p.call(t, zk.OpCreate, createBody("/e", []byte("x"), zk.FlagEphemeral))
	p.call(t, zk.OpGetData, pathBody("/e", true))
	p.call(t, zk.OpGetChildren, pathBody("/", true))
	for w, wants := range map[string][]string{
		"ruok": {"imok"}, "isro": {"rw"}, "gtmk": {"306"},
		"wchs": {"1 connections watching 1 paths\nTotal watches:1\n"}, "wchp": {"/e\n\t0x"}, "wchc": {"\n\t/e\n"},
		"dump": {"Session Sets (1)/(1):\n", "Sessions with Ephemerals (1):\n", "\t/e\n", "Connections Sets ("},
		"cons": {"recved=4,sent=4,sid=0x", "lop=GETC,", "lcxid=0x3,lzxid=0x2,"}, "stat": {"Clients:\n /127.0.0.1:", "Node count: 6\n"},
		"mntr": {"zk_ephemerals_count\t1\n", "zk_watch_count\t2\n", "zk_znode_count\t6\n", "zk_approximate_data_size\t47\n"},
		"conf": {"tickTime=2000\n", "maxSessionTimeout=40000\n"}, "envi": {"Environment:\nzookeeper.version=3.8.0"}, "hash": {""},
		"dirs": {"datadir_size: "}, "srvr": {"Zookeeper version: 3.8.0", "Mode: standalone\n"},
	} {
		got := word(t, s, w)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s does not say %q:\n%s", w[:4], want, got)
			}
		}
	}
	if got := word(t, s, "stmk\x00\x00\x00\x00\x00\x00\x00\x07") + word(t, s, "gtmk"); got != "77" {
		t.Errorf("stmk and gtmk: %s", got)
	}
	if got := word(t, s, "srst"); got != "Server stats reset.\n" {
		t.Error(got)
	}
	if got := word(t, s, "srvr"); !strings.Contains(got, "Received: 1\n") {
		t.Errorf("after srst: %s", got)
	}
	if got := word(t, s, "crst"); got != "Connection stats reset.\n" {
		t.Error(got)
	}
	if got := word(t, s, "cons"); !strings.Contains(got, "recved=0,sent=0,sid=0x") {
		t.Errorf("after crst: %s", got)
	}
}

// TestOutstandingLimit: with more writes under way than there may be, all are done all the same, in order.
func TestOutstandingLimit(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk", OutstandingLimit: 1})
	const writes = 300
	var peers []*peer
	for range 4 {
		p := open(t, s, 10_000)
		for range writes {
			p.nc.Write(p.frame(zk.OpSetData, setBody("/", nil, -1)))
		}
		peers = append(peers, p)
	}
	for _, p := range peers {
		for i := range writes {
			if h, _ := p.next(t); h.Err != zk.OK || h.Xid != int32(i+1) {
				t.Fatalf("%+v", h)
			}
		}
	}
	if n := s.outstanding.Load(); n != 0 {
		t.Errorf("%d writes count as under way", n)
	}
}

// TestAdminFlood: connections to the page that say nothing do not take the descriptors that clients need, and the
// page answers once they are gone.
func TestAdminFlood(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk", AdminAddr: "127.0.0.1:0"})
	var silent []net.Conn
	for range adminCnxnsMax + 50 {
		nc, err := net.Dial("tcp", s.AdminAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, nc)
	}
	alive(t, s)
	for _, nc := range silent {
		nc.Close()
	}
	r, err := http.Get("http://" + s.AdminAddr().String() + "/commands/ruok")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
}
