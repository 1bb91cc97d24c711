package zkserver

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

func (s *Server) adminConf(*http.Request) ([]field, error) {
	c := s.settings()
	return []field{
		{"client_port", c.port}, {"data_dir", c.dir}, {"data_log_dir", c.logDir}, {"tick_time", s.config.TickMs},
		{"max_client_cnxns", s.config.MaxClientCnxns}, {"min_session_timeout", s.config.MinSessionMs},
		{"max_session_timeout", s.config.MaxSessionMs}, {"server_id", 0}, {"client_port_listen_backlog", -1},
	}, nil
}

func (s *Server) adminDirs(*http.Request) ([]field, error) {
	c := s.settings()
	return []field{{"datadir_size", c.dirBytes}, {"logdir_size", c.logBytes}}, nil
}

func (s *Server) adminCons(*http.Request) ([]field, error) { return s.connFields(false), nil }

func (s *Server) connFields(brief bool) []field {
	list := []object{}
	for _, r := range s.connReports() {
		interest := 0
		if r.reading {
			interest = 1
		}
		o := object{
			{"remote_socket_address", r.peer}, {"interest_ops", interest}, {"outstanding_requests", r.queued},
			{"packets_received", r.received}, {"packets_sent", r.sent},
		}
		if t := r.talk; !brief && r.session != 0 {
			o = append(o, object{
				{"session_id", r.session}, {"last_operation", opName(t.op)}, {"established", r.sinceMs},
				{"session_timeout", r.timeoutMs}, {"last_cxid", t.xid}, {"last_zxid", t.zxid},
				{"last_response_time", t.answeredMs}, {"last_latency", t.lastMs}, {"min_latency", t.minMs},
				{"avg_latency", t.meanMs()}, {"max_latency", t.maxMs},
			}...)
		}
		list = append(list, o)
	}
	return []field{{"connections", list}, {"secure_connections", []object{}}}
}

func (s *Server) adminDump(*http.Request) ([]field, error) {
	sessions, _ := s.leases()
	expiry, owned := object{}, object{}
	for _, at := range slices.Sorted(maps.Keys(sessions)) {
		var ids []int64
		for _, x := range sessions[at] {
			ids = append(ids, x.session)
		}
		expiry = append(expiry, field{strconv.FormatInt(at, 10), ids})
	}
	ephemerals := s.ephemerals()
	for _, id := range slices.Sorted(maps.Keys(ephemerals)) {
		owned = append(owned, field{strconv.FormatInt(id, 10), ephemerals[id]})
	}
	return []field{{"expiry_time_to_session_ids", expiry}, {"session_id_to_ephemeral_paths", owned}}, nil
}

func (s *Server) adminMask(*http.Request) ([]field, error) {
	return []field{{"tracemask", s.traceMask.Load()}}, nil
}

func (s *Server) adminSetMask(r *http.Request) ([]field, error) {
	mask, err := strconv.ParseInt(r.URL.Query().Get("traceMask"), 10, 64)
	if err != nil {
		return nil, errors.New("setTraceMask requires long traceMask argument")
	}
	s.traceMask.Store(mask)
	return s.adminMask(r)
}

func (s *Server) adminSnapshot(*http.Request) ([]field, error) {
	return []field{
		{"zxid", strconv.FormatInt(s.snapZxid.Load(), 16)}, {"timestamp", s.snapAtMs.Load() / 1000},
	}, nil
}

func (s *Server) adminSrvr(*http.Request) ([]field, error) {
	r, c := s.report(), s.settings()
	reply := s.stats.replyBytes.get()
	sizes := object{{"last_buffer_size", s.stats.lastReplyBytes.Load()}, {"min_buffer_size", reply.min}, {"max_buffer_size", reply.max}}
	if reply.count == 0 {
		sizes = object{{"last_buffer_size", -1}, {"min_buffer_size", -1}, {"max_buffer_size", -1}}
	}
	return []field{
		{"version", fullVersion()}, {"read_only", false},
		{"server_stats", object{
			{"packets_sent", r.sent}, {"packets_received", r.received}, {"fsync_threshold_exceed_count", s.stats.slowSyncs.Load()},
			{"client_response_stats", sizes}, {"data_dir_size", c.dirBytes}, {"log_dir_size", c.logBytes},
			{"provider_null", false}, {"server_state", "standalone"}, {"last_processed_zxid", r.zxid},
			{"outstanding_requests", r.outstanding}, {"avg_latency", r.meanMs}, {"max_latency", r.maxMs},
			{"min_latency", r.minMs}, {"num_alive_client_connections", r.connections}, {"uptime", r.uptimeMs},
			{"auth_failed_count", s.stats.authFailed.Load()}, {"non_mtlsremote_conn_count", 0},
			{"non_mtlslocal_conn_count", 0},
		}},
		{"client_response", sizes}, {"node_count", r.nodes},
	}, nil
}

func (s *Server) adminStat(r *http.Request) ([]field, error) {
	fields, err := s.adminSrvr(r)
	return append(fields, s.connFields(true)...), err
}

func (s *Server) adminWatchSummary(*http.Request) ([]field, error) {
	n := s.watches.Counts()
	return []field{{"num_connections", n.Watchers}, {"num_paths", n.Paths}, {"num_total_watches", n.Data}}, nil
}

func (s *Server) adminWatches(*http.Request) ([]field, error) {
	bySession, _ := s.watchLists()
	o := object{}
	for _, id := range slices.Sorted(maps.Keys(bySession)) {
		o = append(o, field{strconv.FormatInt(id, 10), bySession[id]})
	}
	return []field{{"session_id_to_watched_paths", o}}, nil
}

func (s *Server) adminWatchesByPath(*http.Request) ([]field, error) {
	_, byPath := s.watchLists()
	o := object{}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		o = append(o, field{path, byPath[path]})
	}
	return []field{{"path_to_session_ids", o}}, nil
}
