// Command zkprobe prints what a ZooKeeper server does on the wire in the corners that implementers get wrong, a line
// each, so that two servers can be compared: zkprobe HOST:PORT. testdata holds what Apache's 3.8.0 printed.
// With -fields it prints the names of what each four-letter word tells, without the values. The server must allow all
// words (4lw.commands.whitelist=*).
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
)

func main() {
	fields := flag.Bool("fields", false, "print the fields of the four-letter words instead")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: zkprobe [-fields] HOST:PORT")
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	run := Probe
	if *fields {
		run = ProbeFields
	}
	err := run(flag.Arg(0), out)
	out.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "zkprobe:", err)
		os.Exit(1)
	}
}
