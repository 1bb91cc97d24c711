// Command zkdiff compares our coordinator with Apache's ZooKeeper: random scripts of several sessions are played on
// both, and every reply and every event must be the same, in the same order for each session.
//
//	zkdiff run [-from SEED] [-n 1000] [-ours H:P] [-theirs H:P]   compares; starts the servers that are not named
//	zkdiff record [-from SEED] [-n 100] -o FILE                   what Apache's server says, for testdata
//
// A script has steps; in each a peer sends some requests in one write, after which every peer is asked, by a ping,
// what it has been told meanwhile. A script on which the servers disagree is shrunk before it is shown, with its seed.
// What cannot be equal is not compared: times, the numbers and passwords of sessions, the order of children; zxids
// are relative to the script's first one, so both servers must use up as many.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"platter/coord/realzk"
	"platter/coord/zkserver"
	"platter/io/clock"
	"platter/io/memdisk"
)

type options struct {
	from         uint64
	n            int
	ours, theirs string
	out          string
	jars         string
	most         int
}

func main() {
	if len(os.Args) < 2 || os.Args[1] != "run" && os.Args[1] != "record" {
		fmt.Fprintln(os.Stderr, "usage: zkdiff run|record [flags]")
		os.Exit(2)
	}
	o := &options{}
	f := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	f.Uint64Var(&o.from, "from", 0, "the first seed")
	f.IntVar(&o.n, "n", 1000, "how many seeds")
	f.StringVar(&o.ours, "ours", "", "our server's `host:port`; \"\" starts one in this process")
	f.StringVar(&o.theirs, "theirs", "", "Apache's; \"\" starts Debian's")
	f.StringVar(&o.jars, "jars", "", "class path of another version of Apache's")
	f.StringVar(&o.out, "o", "", "record: the file")
	f.IntVar(&o.most, "most", 3, "run: end after so many differences")
	_ = f.Parse(os.Args[2:])
	command := run
	if os.Args[1] == "record" {
		command = record
	}
	if err := command(o); err != nil {
		fmt.Fprintln(os.Stderr, "zkdiff:", err)
		os.Exit(1)
	}
}

// Both servers are set up alike: short ticks, so that sessions can expire soon, and long timeouts for all others.
const (
	tickMs  = 100
	shortMs = 2 * tickMs
	longMs  = 40_000
)

// RealOptions set Apache's server up for scripts. It does not sync: the disk is not what is compared.
func realOptions() realzk.Options {
	return realzk.Options{
		TickMs:   tickMs,
		HeapMB:   512,
		PortFrom: 21600,
		Lines:    []string{fmt.Sprint("maxSessionTimeout=", longMs), "extendedTypesEnabled=true", "forceSync=no", "4lw.commands.whitelist=*"},
		JVM: []string{"-Dzookeeper.extendedTypesEnabled=true", "-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=3600000",
			"-Dzookeeper.DigestAuthenticationProvider.superDigest=" + digest("super:test")},
	}
}

// ourConfig is the same for ours.
func ourConfig() zkserver.Config {
	return zkserver.Config{
		FS: memdisk.New(memdisk.Options{}), Clock: clock.Real{}, Dir: "/zk", TickMs: tickMs, MaxSessionMs: longMs,
		ExtendedTypes: true, ContainerCheck: time.Hour, Pollers: 1, SuperDigest: digest("super:test"),
	}
}

func run(o *options) error {
	if o.ours == "" {
		s, err := zkserver.Start(context.Background(), ourConfig())
		if err != nil {
			return err
		}
		defer s.Close()
		o.ours = s.Addr().String()
	}
	theirs, stop, err := o.real()
	if err != nil {
		return err
	}
	defer stop()
	ours, err := newTarget(o.ours, shortMs, longMs)
	if err != nil {
		return err
	}
	p := &pair{ours, theirs}
	found := 0
	for i := range uint64(o.n) {
		d, err := p.check(o.from + i)
		if err != nil {
			return err
		}
		if d != nil {
			fmt.Println(d)
			if found++; found >= o.most {
				break
			}
		}
	}
	if found > 0 {
		return fmt.Errorf("%d differences", found)
	}
	fmt.Printf("seeds %d to %d: no difference\n", o.from, o.from+uint64(o.n)-1)
	return nil
}

func (o *options) real() (*target, func(), error) {
	stop := func() {}
	if o.theirs == "" {
		options := realOptions()
		options.Jars = o.jars
		s, err := realzk.Start(options)
		if err != nil {
			return nil, nil, fmt.Errorf("a real ZooKeeper: %w", err)
		}
		o.theirs, stop = s.Addr, s.Stop
	}
	t, err := newTarget(o.theirs, shortMs, longMs)
	if err != nil {
		stop()
	}
	return t, stop, err
}
