package clock

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var start = time.Unix(1_000_000, 0)

func TestVirtualFiresInOrder(t *testing.T) {
	v := NewVirtual(start)
	var course []string
	note := func(what string) func() {
		return func() { course = append(course, fmt.Sprint(what, "@", v.Now().Sub(start))) }
	}
	v.AfterFunc(3*time.Second, note("c"))
	v.AfterFunc(time.Second, func() {
		note("a")()
		v.AfterFunc(time.Second, note("b")) // falls due within the same Advance
	})
	v.AfterFunc(3*time.Second, note("d"))
	v.AfterFunc(9*time.Second, note("e"))
	stop := v.AfterFunc(2*time.Second, note("stopped"))
	if !stop() || stop() {
		t.Error("stop tells the first time only that it was in time")
	}
	v.Advance(5 * time.Second)
	if got, want := strings.Join(course, " "), "a@1s b@2s c@3s d@3s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if at, ok := v.Next(); !ok || at != start.Add(9*time.Second) || v.Waiting() != 1 {
		t.Errorf("next at %v, %d waiting", at, v.Waiting())
	}
	if v.NowMs() != start.UnixMilli()+5000 {
		t.Errorf("stands at %v", v.Now())
	}
}

func TestVirtualAfter(t *testing.T) {
	v := NewVirtual(start)
	<-v.After(0)
	<-v.After(-time.Second)
	c := v.After(time.Second)
	v.Advance(time.Second - 1)
	select {
	case <-c:
		t.Fatal("too early")
	default:
	}
	v.Advance(time.Hour)
	if at := <-c; !at.Equal(start.Add(time.Second)) {
		t.Errorf("delivered %v", at)
	}
}

func TestSkewed(t *testing.T) {
	v := NewVirtual(start)
	s := NewSkewed(v, -time.Minute, 2)
	v.Advance(10 * time.Second)
	if got := s.Now().Sub(start); got != -40*time.Second {
		t.Errorf("after 10 s it shows %v", got)
	}
	c := s.After(10 * time.Second) // five of the base's
	v.Advance(5 * time.Second)
	<-c
	s.Jump(-time.Hour)
	if got := s.NowMs() - start.UnixMilli(); got != (-30*time.Second - time.Hour).Milliseconds() {
		t.Errorf("after a jump it shows %d ms", got)
	}
	before := Elapsed(s)
	s.Jump(time.Hour)
	v.Advance(time.Second)
	if got := Elapsed(s) - before; got != 2*time.Second {
		t.Errorf("a jump is a span of %v", got)
	}
}

func TestReal(t *testing.T) {
	var c Clock = Real{}
	done := make(chan struct{})
	c.AfterFunc(time.Millisecond, func() { close(done) })
	<-done
	<-c.After(time.Millisecond)
	if at := ElapsedMs(c); at < 0 || at > time.Since(began).Milliseconds() {
		t.Errorf("%d ms have passed", at)
	}
	if c.AfterFunc(time.Hour, func() {})() != true {
		t.Error("stop was not in time")
	}
	if c.Now().UnixMilli() > c.NowMs() {
		t.Error("Now is ahead of NowMs")
	}
}
