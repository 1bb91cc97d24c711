// Package zkkill kills `platter coord`, the process that users run, under load, and holds it to what it has
// acknowledged.
package zkkill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"platter/coord/zkclient"
	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

const (
	kills       = 12
	writerCount = 8
	longSession = 20 * proc.CoordinatorTickMs * time.Millisecond
)

func start(t *testing.T) *proc.Coordinator {
	t.Helper()
	c, err := proc.StartCoordinator(proc.Alone, proc.Binary(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

func connect(t *testing.T, ctx context.Context, addr string, session time.Duration) *zkclient.Client {
	t.Helper()
	c, err := zkclient.Connect(ctx, zkclient.Config{Servers: []string{addr}, SessionTimeout: session})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Drop)
	return c
}

// writer makes sequential nodes under one parent, sets a counter, and does both in multis; it notes what it was
// answered.
type writer struct {
	id      int
	zk      *zkclient.Client
	made    []string // acknowledged
	counter int32    // acknowledged version of its own node
	unsure  bool     // a set is unanswered: the version may be one more
	zxid    int64    // the highest that it was told
}

func (w *writer) own() string { return fmt.Sprint("/w", w.id) }

func (w *writer) run(ctx context.Context, stop *atomic.Bool) error {
	for n := 0; !stop.Load(); n++ {
		var err error
		switch n % 3 {
		case 0:
			var made string
			var st zkclient.Stat
			if made, st, err = w.zk.CreateWith(ctx, "/q/n-", nil, zkclient.CreateOptions{Mode: zkclient.PersistentSequential}); err == nil {
				w.made = append(w.made, made)
				err = w.see(st.Czxid)
			}
		case 1:
			err = w.set(ctx)
		default:
			var rs []zkclient.Result
			path := fmt.Sprintf("%s/m%d", w.own(), n)
			if rs, err = w.zk.Multi(ctx, zkclient.CreateOp(path, nil, zkclient.Persistent), zkclient.CreateOp(path+"/x", nil, zkclient.Ephemeral)); err == nil {
				w.made = append(w.made, rs[0].Path, rs[1].Path)
			}
		}
		if err != nil && !errors.Is(err, zkclient.ErrConnectionLoss) {
			return fmt.Errorf("writer %d: %w", w.id, err)
		}
	}
	return nil
}

func (w *writer) set(ctx context.Context) error {
	st, err := w.zk.Set(ctx, w.own(), fmt.Append(nil, w.counter), -1)
	if errors.Is(err, zkclient.ErrConnectionLoss) {
		w.unsure = true
		return nil
	}
	if err != nil {
		return err
	}
	if st.Version != w.counter+1 && !(w.unsure && st.Version > w.counter) {
		return fmt.Errorf("version %d after %d", st.Version, w.counter)
	}
	w.counter, w.unsure = st.Version, false
	return w.see(st.Mzxid)
}

func (w *writer) see(zxid int64) error {
	if zxid <= w.zxid {
		return fmt.Errorf("zxid %#x was given after %#x", zxid, w.zxid)
	}
	w.zxid = zxid
	return nil
}

// TestKill: SIGKILL under load, again and again. Nothing that was acknowledged is lost, no sequence number or zxid
// is given twice, sessions of living clients and their ephemeral nodes go on, those of the dead go.
func TestKill(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 180*time.Second)
	defer cancel()
	rnd := proc.Random(t, 0)
	if _, err := connect(t, ctx, c.Addr, longSession).Create(ctx, "/q", nil, zkclient.Persistent); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var running sync.WaitGroup
	writers := make([]*writer, writerCount)
	for i := range writers {
		w := &writer{id: i, zk: connect(t, ctx, c.Addr, longSession)}
		writers[i] = w
		if _, err := w.zk.Create(ctx, w.own(), nil, zkclient.Persistent); err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := w.run(ctx, &stop); err != nil {
				t.Error(err)
			}
		})
	}
	// One whose client is gone for good.
	dead := connect(t, ctx, c.Addr, 2*proc.CoordinatorTickMs*time.Millisecond)
	if _, err := dead.Create(ctx, "/dead", nil, zkclient.Ephemeral); err != nil {
		t.Fatal(err)
	}
	dead.Drop()
	for range kills {
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
		c.Kill()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	running.Wait()
	check(t, ctx, connect(t, ctx, c.Addr, longSession), writers)
}

func check(t *testing.T, ctx context.Context, zk *zkclient.Client, writers []*writer) {
	t.Helper()
	total, numbers := 0, map[int]string{}
	for _, w := range writers {
		id, _ := w.zk.Session()
		for _, path := range w.made {
			st, err := zk.Exists(ctx, path, nil)
			if err != nil {
				t.Errorf("acknowledged, and lost: %v", err)
			}
			if strings.HasSuffix(path, "/x") && st.EphemeralOwner != id {
				t.Errorf("%s belongs to session %#x, not to %#x", path, st.EphemeralOwner, id)
			}
			if digits, ok := strings.CutPrefix(path, "/q/n-"); ok {
				n, err := strconv.Atoi(digits)
				if other := numbers[n]; err != nil || other != "" {
					t.Errorf("%s and %s have one number (%v)", path, other, err)
				}
				numbers[n] = path
			}
		}
		total += len(w.made)
		st, err := zk.Exists(ctx, w.own(), nil)
		if err != nil || st.Version < w.counter {
			t.Errorf("%s: version %d was acknowledged, there is %d (%v)", w.own(), w.counter, st.Version, err)
		}
	}
	t.Logf("%d kills, %d nodes acknowledged", kills, total)
	if total == 0 {
		t.Error("nothing was written")
	}
	for {
		_, err := zk.Exists(ctx, "/dead", nil)
		if errors.Is(err, zkclient.ErrNoNode) {
			return
		}
		if ctx.Err() != nil {
			t.Fatal("the ephemeral node of a dead session stays:", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestSuspended: a coordinator that was stopped for longer than any timeout takes nobody's session who is alive.
func TestSuspended(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	const session = 8 * proc.CoordinatorTickMs * time.Millisecond // or a busy machine could cost a session
	clients := make([]*zkclient.Client, 5)
	for i := range clients {
		clients[i] = connect(t, ctx, c.Addr, session)
		if _, err := clients[i].Create(ctx, fmt.Sprint("/e", i), nil, zkclient.Ephemeral); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * session)
	if err := c.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for i, zk := range clients {
		id, _ := zk.Session()
		st, err := zk.Exists(ctx, fmt.Sprint("/e", i), nil)
		for errors.Is(err, zkclient.ErrConnectionLoss) {
			st, err = zk.Exists(ctx, fmt.Sprint("/e", i), nil)
		}
		if err != nil || st.EphemeralOwner != id {
			t.Fatalf("client %d: its node is gone: %v", i, err)
		}
	}
}
