package zkserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	ioconn "platter/io/conn"
)

// adminCommands are those of ZooKeeper's AdminServer (org.apache.zookeeper.server.admin.Commands), by all their
// names: a word of four letters is another name of some.
var adminCommands = map[string]adminCommand{
	"configuration":         {[]string{"conf", "config"}, (*Server).adminConf},
	"connection_stat_reset": {[]string{"crst"}, func(s *Server, _ *http.Request) ([]field, error) { s.crstWord(); return nil, nil }},
	"connections":           {[]string{"cons"}, (*Server).adminCons},
	"dirs":                  {nil, (*Server).adminDirs},
	"dump":                  {nil, (*Server).adminDump},
	"environment":           {[]string{"envi", "env"}, func(*Server, *http.Request) ([]field, error) { return environment(), nil }},
	"get_trace_mask":        {[]string{"gtmk"}, (*Server).adminMask},
	"hash":                  {nil, one("digests", []object{})},
	"initial_configuration": {[]string{"icfg"}, func(s *Server, _ *http.Request) ([]field, error) {
		return []field{{"initial_configuration", s.config.Initial}}, nil
	}},
	"is_read_only":                   {[]string{"isro"}, one("read_only", false)},
	"last_snapshot":                  {[]string{"lsnp"}, (*Server).adminSnapshot},
	"leader":                         {[]string{"lead"}, notThere},
	"monitor":                        {[]string{"mntr"}, func(s *Server, _ *http.Request) ([]field, error) { return s.metrics(), nil }},
	"observer_connection_stat_reset": {[]string{"orst"}, nothingToTell},
	"observers": {[]string{"obsr"}, func(*Server, *http.Request) ([]field, error) {
		return []field{{"synced_observers", 0}, {"observers", []object{}}}, nil
	}},
	"ruok":              {nil, nothingToTell},
	"server_stats":      {[]string{"srvr"}, (*Server).adminSrvr},
	"set_trace_mask":    {[]string{"stmk"}, (*Server).adminSetMask},
	"stat_reset":        {[]string{"srst"}, func(s *Server, _ *http.Request) ([]field, error) { s.srstWord(); return nil, nil }},
	"stats":             {[]string{"stat"}, (*Server).adminStat},
	"system_properties": {[]string{"sysp"}, func(*Server, *http.Request) ([]field, error) { return environment(), nil }},
	"voting_view":       {nil, one("current_config", object{})},
	"watch_summary":     {[]string{"wchs"}, (*Server).adminWatchSummary},
	"watches":           {[]string{"wchc"}, (*Server).adminWatches},
	"watches_by_path":   {[]string{"wchp"}, (*Server).adminWatchesByPath},
	"zabstate": {nil, func(*Server, *http.Request) ([]field, error) {
		return []field{{"voting", false}, {"zabstate", ""}}, nil
	}},
}

type adminCommand struct {
	aliases []string
	run     func(*Server, *http.Request) ([]field, error)
}

func nothingToTell(*Server, *http.Request) ([]field, error) { return nil, nil }

func one(name string, value any) func(*Server, *http.Request) ([]field, error) {
	return func(*Server, *http.Request) ([]field, error) { return []field{{name, value}}, nil }
}

func notThere(*Server, *http.Request) ([]field, error) {
	return nil, errors.New("server is not initialized")
}

const (
	adminRequestTime = 30 * time.Second // admin.idleTimeout's default
	adminCnxnsMax    = 256
	adminHeaderMax   = 16 << 10
)

// startAdmin serves the admin page, when it has an address.
func (s *Server) startAdmin(ctx context.Context) error {
	if s.config.AdminAddr == "" {
		return nil
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.config.AdminAddr)
	if err != nil && s.config.AdminOptional {
		s.log.Warn("coordinator: no admin page", "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("coordinator: admin page: %w", err)
	}
	s.adminLn = ln
	gate := ioconn.NewGate(ioconn.Limits{Max: adminCnxnsMax}) // the descriptors are for clients
	s.admin = &http.Server{
		Handler: http.HandlerFunc(s.serveAdmin), ReadTimeout: adminRequestTime, WriteTimeout: adminRequestTime,
		IdleTimeout: adminRequestTime, MaxHeaderBytes: adminHeaderMax,
	}
	s.running.Go(func() {
		if err := s.admin.Serve(gate.Listener(ln)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Warn("coordinator: the admin page has ended", "err", err)
		}
	})
	return nil
}

// AdminAddr is where the admin page listens, nil when there is none.
func (s *Server) AdminAddr() net.Addr {
	if s.adminLn == nil {
		return nil
	}
	return s.adminLn.Addr()
}

func (s *Server) stopAdmin() {
	if s.admin != nil {
		s.admin.Close()
	}
}

func (s *Server) serveAdmin(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, s.config.AdminURL)
	if !ok || rest != "" && rest[0] != '/' {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	name := strings.Trim(rest, "/")
	if name == "" {
		for _, c := range slices.Sorted(maps.Keys(adminCommands)) {
			fmt.Fprintf(w, "<a href=\"%s/%s\">%s</a>\n<br/>\n", s.config.AdminURL, c, c)
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(appendJSON(nil, s.runAdmin(name, r), ""))
}

// runAdmin gives a command's answer: its fields, then its name and the error, as the real one orders them.
func (s *Server) runAdmin(name string, r *http.Request) object {
	full, c, ok := findAdmin(name)
	if !ok {
		return object{{"command", name}, {"error", "Unknown command: " + name}}
	}
	fields, err := c.run(s, r)
	if err != nil {
		return object{{"error", err.Error()}, {"command", full}}
	}
	return append(object(fields), field{"command", full}, field{"error", nil})
}

func findAdmin(name string) (string, adminCommand, bool) {
	if c, ok := adminCommands[name]; ok {
		return name, c, true
	}
	for full, c := range adminCommands {
		if slices.Contains(c.aliases, name) {
			return full, c, true
		}
	}
	return "", adminCommand{}, false
}
