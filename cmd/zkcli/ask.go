package zkcli

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"slices"
	"strings"

	"platter/coord/zkclient"
)

// WhoAmI prints whom the server takes us for.
func (t *Tool) WhoAmI(ctx context.Context) error {
	in, cancel := t.within(ctx)
	defer cancel()
	ids, err := t.zk.WhoAmI(in)
	if err != nil {
		return err
	}
	if !t.o.JSON {
		if err := t.line("Auth scheme: User"); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if t.o.JSON {
			err = t.emit(struct {
				Scheme string `json:"scheme"`
				ID     string `json:"id"`
			}{id.Scheme, id.ID})
		} else {
			err = t.line("%s: %s", id.Scheme, id.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Ephemerals prints the ephemeral nodes of this very session whose paths begin so, one a line.
func (t *Tool) Ephemerals(ctx context.Context, prefix string) error {
	in, cancel := t.within(ctx)
	defer cancel()
	paths, err := t.zk.Ephemerals(in, clean(prefix))
	if err != nil {
		return err
	}
	for _, p := range paths {
		if t.o.JSON {
			err = t.emit(nodeJSON{Path: p})
		} else {
			err = t.line("%s", p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AllChildrenNumber prints how many nodes there are below one.
func (t *Tool) AllChildrenNumber(ctx context.Context, p string) error {
	p = clean(p)
	in, cancel := t.within(ctx)
	defer cancel()
	n, err := t.zk.AllChildrenNumber(in, p)
	switch {
	case err != nil:
		return err
	case t.o.JSON:
		return t.emit(struct {
			Path  string `json:"path"`
			Count int    `json:"allChildrenNumber"`
		}{p, n})
	}
	return t.line("%d", n)
}

// Config prints the servers of an ensemble as they stand in its tree; forClients: as clients are given them. A server
// that stands alone has none.
func (t *Tool) Config(ctx context.Context, l Look, forClients bool) error {
	events := make(chan zkclient.Event, 1)
	in, cancel := t.within(ctx)
	defer cancel()
	data, st, err := t.zk.ServerConfig(in, t.watcher(l.Watch, events))
	if err != nil {
		return err
	}
	text := data
	if forClients {
		text = []byte(clientServers(data))
	}
	if err := t.printData("/zookeeper/config", text, st, l.Stat); err != nil {
		return err
	}
	return t.await(ctx, l.Watch, events)
}

// clientServers makes "VERSION host:port,host:port" of a configuration (ConfigUtils.getClientConfigStr). A server is
// server.N=host:port:port[:role][;[client address:]client port].
func clientServers(config []byte) string {
	version, servers := "", []string{}
	sc := bufio.NewScanner(bytes.NewReader(config))
	for sc.Scan() {
		key, value, ok := strings.Cut(sc.Text(), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok:
		case key == "version":
			version = value
		case strings.HasPrefix(key, "server."):
			_, client, _ := strings.Cut(value, ";")
			host, port := "0.0.0.0", client
			if i := strings.LastIndexByte(client, ':'); i >= 0 {
				host, port = strings.Trim(client[:i], "[]"), client[i+1:]
			}
			if port != "" {
				servers = append(servers, net.JoinHostPort(host, port))
			}
		}
	}
	slices.Sort(servers)
	return version + " " + strings.Join(servers, ",")
}
