package zkserver

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
)

// metricNames are all that ZooKeeper 3.8.0's mntr gives, in its order: "value NAME", "summary NAME" (mean, extremes,
// count, sum) and "percentiles NAME" (those too). What an ensemble alone has, or this server does otherwise, is 0.
//
//go:embed metrics.txt
var metricNames string

// field is a named value in a list whose order is kept.
type field struct {
	name  string
	value any
}

// metrics gives what mntr and the admin page's monitor tell.
func (s *Server) metrics() []field {
	values, summaries := s.metricValues(), s.metricSummaries()
	var out []field
	for line := range strings.Lines(metricNames) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "value" {
			v, ok := values[name]
			if !ok {
				v = int64(0)
			}
			out = append(out, field{name, v})
			continue
		}
		var n numbers
		if x := summaries[name]; x != nil {
			n = x.get()
		}
		out = appendSummary(out, name, n, kind == "percentiles")
	}
	if all := s.stats.namespaces.all.Load(); all != nil {
		out = appendNamespaces(out, *all)
	}
	return out
}

func appendSummary(out []field, name string, n numbers, percentiles bool) []field {
	out = append(out, field{"avg_" + name, n.mean()}, field{"min_" + name, n.min}, field{"max_" + name, n.max},
		field{"cnt_" + name, n.count}, field{"sum_" + name, n.sum})
	if !percentiles {
		return out
	}
	return append(out, field{"p50_" + name, n.quantile(0.5)}, field{"p95_" + name, n.quantile(0.95)},
		field{"p99_" + name, n.quantile(0.99)}, field{"p999_" + name, n.quantile(0.999)})
}

func appendNamespaces(out []field, all map[string]*namespace) []field {
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		if n := all[name].reads.get(); n.count > 0 {
			out = appendSummary(out, name+"_read_per_namespace", n, false)
		}
	}
	for _, name := range names {
		if n := all[name].writes.get(); n.count > 0 {
			out = appendSummary(out, name+"_write_per_namespace", n, false)
		}
	}
	return out
}

func (s *Server) metricValues() map[string]any {
	r := s.report()
	reply := s.stats.replyBytes.get()
	last, low, high := s.stats.lastReplyBytes.Load(), reply.min, reply.max
	if reply.count == 0 {
		last, low, high = -1, -1, -1
	}
	watches := s.watches.Counts()
	open, most := s.descriptors()
	return map[string]any{
		"version": fullVersion(), "server_state": "standalone",
		"ephemerals_count": int64(r.ephemerals), "num_alive_connections": int64(r.connections),
		"avg_latency": r.meanMs, "min_latency": r.minMs, "max_latency": r.maxMs,
		"outstanding_requests": int64(r.outstanding), "znode_count": int64(r.nodes),
		"global_sessions": int64(r.sessions), "connection_drop_probability": 0.0,
		"last_client_response_size": last, "min_client_response_size": low, "max_client_response_size": high,
		"packets_sent": r.sent, "packets_received": r.received, "watch_count": int64(watches.All),
		"auth_failed_count": s.stats.authFailed.Load(), "approximate_data_size": r.dataBytes,
		"max_file_descriptor_count": most, "open_file_descriptor_count": open, "uptime": r.uptimeMs,
		"bytes_received_count": s.stats.bytesReceived.Load(), "connection_request_count": s.stats.requests.Load(),
		"connection_rejected": s.stats.refused.Load(), "connection_drop_count": s.stats.dropped.Load(),
		"stale_sessions_expired": s.stats.expired.Load(), "snap_count": s.stats.snapshots.Load(),
		"watch_bytes": int64(watches.Bytes),
	}
}

func (s *Server) metricSummaries() map[string]*summary {
	return map[string]*summary{
		"readlatency": &s.stats.reads, "updatelatency": &s.stats.writes, "fsynctime": &s.stats.syncs,
		"sync_processor_batch_size": &s.stats.batches,
	}
}
