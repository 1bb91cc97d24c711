package zkcli

import (
	"context"
	"errors"
	"fmt"

	"platter/coord/zkclient"
)

// Look is what a reading command is asked for beside the path.
type Look struct {
	Stat      bool // -s
	Watch     bool // -w: then one event is waited for
	Recursive bool // -R
}

type nodeJSON struct {
	Path string `json:"path"`
	dataJSON
	Children []string  `json:"children,omitempty"`
	ACL      []string  `json:"acl,omitempty"`
	Stat     *statJSON `json:"stat,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// List prints a node's children, one a line; recursive: the paths of the node and all below it.
func (t *Tool) List(ctx context.Context, p string, l Look) error {
	if p = clean(p); l.Recursive {
		return t.walk(ctx, p, func(at string, _ error) error {
			if t.o.JSON {
				return t.emit(nodeJSON{Path: at})
			}
			return t.line("%s", at)
		})
	}
	events := make(chan zkclient.Event, 1)
	in, cancel := t.within(ctx)
	defer cancel()
	names, st, err := t.zk.Children(in, p, t.watcher(l.Watch, events))
	if err != nil {
		return err
	}
	if err := t.printList(p, names, st, l.Stat); err != nil {
		return err
	}
	return t.await(ctx, l.Watch, events)
}

func (t *Tool) printList(p string, names []string, st zkclient.Stat, withStat bool) error {
	if t.o.JSON {
		v := struct {
			Path     string    `json:"path"`
			Children []string  `json:"children"`
			Stat     *statJSON `json:"stat,omitempty"`
		}{Path: p, Children: append([]string{}, names...)}
		if withStat {
			v.Stat = toJSON(st)
		}
		return t.emit(v)
	}
	for _, name := range names {
		if err := t.line("%s", name); err != nil {
			return err
		}
	}
	if withStat {
		return t.line("%s", statText(st))
	}
	return nil
}

// Get prints a node's data as it is, and a new line; null as zkCli does.
func (t *Tool) Get(ctx context.Context, p string, l Look) error {
	p = clean(p)
	events := make(chan zkclient.Event, 1)
	in, cancel := t.within(ctx)
	defer cancel()
	data, st, err := t.zk.Get(in, p, t.watcher(l.Watch, events))
	if err != nil {
		return err
	}
	if err := t.printData(p, data, st, l.Stat); err != nil {
		return err
	}
	return t.await(ctx, l.Watch, events)
}

func (t *Tool) printData(p string, data []byte, st zkclient.Stat, withStat bool) error {
	if t.o.JSON {
		v := nodeJSON{Path: p, dataJSON: toData(data)}
		if withStat {
			v.Stat = toJSON(st)
		}
		return t.emit(v)
	}
	text := string(data)
	if data == nil {
		text = "null"
	}
	if withStat {
		text += "\n" + statText(st)
	}
	return t.line("%s", text)
}

// Stat prints a node's numbers.
func (t *Tool) Stat(ctx context.Context, p string, l Look) error {
	p = clean(p)
	events := make(chan zkclient.Event, 1)
	in, cancel := t.within(ctx)
	defer cancel()
	st, err := t.zk.Exists(in, p, t.watcher(l.Watch, events))
	missing := errors.Is(err, zkclient.ErrNoNode)
	switch {
	case missing && l.Watch: // its creation is what is waited for
		return t.await(ctx, true, events)
	case err != nil:
		return err
	}
	if t.o.JSON {
		err = t.emit(nodeJSON{Path: p, Stat: toJSON(st)})
	} else {
		err = t.line("%s", statText(st))
	}
	if err != nil {
		return err
	}
	return t.await(ctx, l.Watch, events)
}

// GetACL prints a node's access list, one entry a line.
func (t *Tool) GetACL(ctx context.Context, p string, withStat bool) error {
	p = clean(p)
	in, cancel := t.within(ctx)
	defer cancel()
	acl, st, err := t.zk.GetACL(in, p)
	if err != nil {
		return err
	}
	if t.o.JSON {
		v := nodeJSON{Path: p, ACL: formatACL(acl)}
		if withStat {
			v.Stat = toJSON(st)
		}
		return t.emit(v)
	}
	for _, a := range formatACL(acl) {
		if err := t.line("%s", a); err != nil {
			return err
		}
	}
	if withStat {
		return t.line("%s", statText(st))
	}
	return nil
}

// Dump prints a node and all below it: path, numbers that tell nodes apart, data, access list where it is not
// the open one. As JSON a node a line.
func (t *Tool) Dump(ctx context.Context, p string) error {
	return t.walk(ctx, clean(p), func(at string, refused error) error {
		if refused != nil {
			return t.dumpRefused(at, refused)
		}
		in, cancel := t.within(ctx)
		defer cancel()
		data, st, err := t.zk.Get(in, at, nil)
		switch {
		case errors.Is(err, zkclient.ErrNoNode):
			return nil
		case errors.Is(err, zkclient.ErrNoAuth):
			return t.dumpRefused(at, err)
		case err != nil: // a dump without it would look whole
			return err
		}
		acl, _, err := t.zk.GetACL(in, at)
		if err != nil && !errors.Is(err, zkclient.ErrNoNode) {
			return err
		}
		if t.o.JSON {
			return t.emit(nodeJSON{Path: at, dataJSON: toData(data), ACL: formatACL(acl), Stat: toJSON(st)})
		}
		return t.dumpText(at, data, acl, st)
	})
}

func (t *Tool) dumpRefused(at string, err error) error {
	if t.o.JSON {
		return t.emit(nodeJSON{Path: at, Error: err.Error()})
	}
	return t.line("%s  (%v)", at, err)
}

func (t *Tool) dumpText(at string, data []byte, acl []zkclient.ACL, st zkclient.Stat) error {
	head := fmt.Sprintf("%s  version=%d", at, st.Version)
	if st.EphemeralOwner != 0 {
		head += " owner=" + hex(st.EphemeralOwner)
	}
	if text := formatACL(acl); len(text) != 1 || text[0] != "world:anyone:cdrwa" {
		head += fmt.Sprintf(" acl=%v", text)
	}
	if err := t.line("%s", head); err != nil || len(data) == 0 {
		return err
	}
	if d := toData(data); d.Data != nil {
		return t.line("    %s", *d.Data)
	}
	return t.line("    (base64) %s", *toData(data).Base64)
}
