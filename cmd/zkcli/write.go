package zkcli

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"platter/coord/zkclient"
)

// New is a node that is to be made.
type New struct {
	Data []byte // nil: null
	zkclient.CreateOptions
	Parents bool // missing ones are made
}

// Create makes a node and prints its path.
func (t *Tool) Create(ctx context.Context, p string, n New) error {
	in, cancel := t.within(ctx)
	defer cancel()
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if i := strings.LastIndexByte(p, '/'); n.Parents && i > 0 {
		if err := t.zk.Ensure(in, p[:i], nil); err != nil {
			return err
		}
	}
	made, st, err := t.zk.CreateWith(in, p, n.Data, n.CreateOptions)
	if err != nil {
		return err
	}
	if t.o.JSON {
		return t.emit(nodeJSON{Path: made, Stat: toJSON(st)})
	}
	return t.line("Created %s", made)
}

// Set writes a node's data if it has the version, or -1: whatever it has.
func (t *Tool) Set(ctx context.Context, p string, data []byte, version int32, withStat bool) error {
	in, cancel := t.within(ctx)
	defer cancel()
	st, err := t.zk.Set(in, clean(p), data, version)
	return t.written(p, st, withStat, err)
}

// SetACL replaces a node's access list, and with recursive those of all below it.
func (t *Tool) SetACL(ctx context.Context, p string, acl []zkclient.ACL, version int32, withStat, recursive bool) error {
	if !recursive {
		in, cancel := t.within(ctx)
		defer cancel()
		st, err := t.zk.SetACL(in, clean(p), acl, version)
		return t.written(p, st, withStat, err)
	}
	return t.walk(ctx, clean(p), func(at string, refused error) error {
		if refused != nil {
			return refused
		}
		in, cancel := t.within(ctx)
		defer cancel()
		st, err := t.zk.SetACL(in, at, acl, -1)
		if errors.Is(err, zkclient.ErrNoNode) {
			return nil
		}
		return t.written(at, st, withStat, err)
	})
}

func (t *Tool) written(p string, st zkclient.Stat, withStat bool, err error) error {
	switch {
	case err != nil:
		return err
	case t.o.JSON:
		return t.emit(nodeJSON{Path: clean(p), Stat: toJSON(st)})
	case withStat:
		return t.line("%s", statText(st))
	}
	return nil
}

// Delete removes a node without children, if it has the version, or -1: whatever it has.
func (t *Tool) Delete(ctx context.Context, p string, version int32) error {
	in, cancel := t.within(ctx)
	defer cancel()
	return t.zk.Delete(in, clean(p), version)
}

// DeleteAll removes a node and all below it, leaves first, so many at once; each lot goes as one or not at all.
func (t *Tool) DeleteAll(ctx context.Context, p string, batch int) error {
	if p = clean(p); p == "/" {
		return errors.New("the whole tree is not deleted at once: name a node")
	}
	var paths []string
	err := t.walk(ctx, p, func(at string, refused error) error {
		paths = append(paths, at)
		return refused
	})
	if err != nil {
		return err
	}
	slices.Reverse(paths)
	for lot := range lots(paths, batch) {
		if err := t.deleteLot(ctx, lot); err != nil {
			return err
		}
	}
	return nil
}

// lotBytesMax keeps a lot well below jute.maxbuffer.
const lotBytesMax = 256 << 10

// lots cuts paths into lots of count at most, and not too long ones.
func lots(paths []string, count int) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for len(paths) > 0 {
			n, bytes := 0, 0
			for n < len(paths) && n < count && (n == 0 || bytes+len(paths[n]) < lotBytesMax) {
				bytes += len(paths[n]) + 32
				n++
			}
			if !yield(paths[:n]) {
				return
			}
			paths = paths[n:]
		}
	}
}

// deleteLot deletes nodes in one multi, or, when one of them has gone meanwhile or may not go, one by one.
func (t *Tool) deleteLot(ctx context.Context, paths []string) error {
	ops := make([]zkclient.Op, len(paths))
	for i, at := range paths {
		ops[i] = zkclient.DeleteOp(at, -1)
	}
	in, cancel := t.within(ctx)
	defer cancel()
	if _, err := t.zk.Multi(in, ops...); err == nil {
		return nil
	}
	for _, at := range paths {
		if err := t.Delete(ctx, at, -1); err != nil && !errors.Is(err, zkclient.ErrNoNode) {
			return err
		}
	}
	return nil
}

// Sync waits until what others have written before is seen.
func (t *Tool) Sync(ctx context.Context, p string) error {
	in, cancel := t.within(ctx)
	defer cancel()
	return t.zk.Sync(in, clean(p))
}

// Hold keeps the session, and so its ephemeral nodes, until ctx ends.
func (t *Tool) Hold(ctx context.Context) { <-ctx.Done() }
