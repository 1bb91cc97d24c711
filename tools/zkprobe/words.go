package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"platter/tools/zkwire"
)

// words prints the first line of each four-letter word's answer.
func (p *probe) words() {
	for _, q := range []string{"ruok", "srvr", "stat", "mntr", "conf", "cons", "isro", "envi", "dump", "wchs", "srst", "gtmk"} {
		answer, err := zkwire.Word(p.addr, q)
		must(err)
		line, _, _ := strings.Cut(answer, "\n")
		if i := strings.Index(line, "version"); i >= 0 {
			line = line[:i+len("version")]
		}
		p.out("4lw."+q, "%q", line[:min(60, len(line))])
	}
}

// allWords are what ProbeFields asks, in this order: crst, srst and stmk change what others tell. hash is not among
// them: it lists digests of the tree that only servers of the same kind can compare.
var allWords = []string{"ruok", "isro", "conf", "envi", "srvr", "stat", "cons", "dump", "dirs", "wchs", "wchc", "wchp",
	"mntr", "gtmk", "stmk", "crst", "srst", "nope"}

// ProbeFields writes the shape of every four-letter word's answer: each line with its values masked, sorted and without
// repetition, so that two servers can be compared by what they tell, not by how they fare. It holds a session with
// an ephemeral node and a watch of each kind meanwhile.
func ProbeFields(addr string, w io.Writer) (err error) {
	defer func() {
		if f, ok := recover().(failure); ok {
			err = f.err
		}
	}()
	p := &probe{addr: addr, w: w}
	s := p.open()
	defer s.call(zkwire.OpClose, nil)
	s.create("/zkprobe-fields", 1)
	s.call(zkwire.OpGetChildren, zkwire.PathWatch("/", true))
	s.call(zkwire.OpSetData, zkwire.Set("/zkprobe-fields", nil, 7)) // refused
	for range 130 {                                                 // the tree's digest is logged every 128 zxids
		s.call(zkwire.OpSetData, zkwire.Set("/zkprobe-fields", nil, -1))
	}
	s.call(zkwire.OpGetData, zkwire.PathWatch("/zkprobe-fields", true))
	for _, q := range allWords {
		sent := q
		if q == "stmk" { // the mask follows
			sent += "\x00\x00\x00\x00\x00\x00\x01\x32"
		}
		answer, err := zkwire.Word(addr, sent)
		must(err)
		for _, line := range Shape(q, answer) {
			fmt.Fprintf(w, "%s: %s\n", q, line)
		}
	}
	return nil
}

var (
	hexNumber = regexp.MustCompile(`0x[0-9a-f]+`)
	number    = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)
	address   = regexp.MustCompile(`/?([0-9]{1,3}\.){3}[0-9]{1,3}(:[0-9]+)?|/?\[?(::1|0:0:0:0:0:0:0:1)\]?(:[0-9]+)?`)
	cutFields = regexp.MustCompile(`(queued|recved|sent|sid|lop|est|to|lcxid|lzxid|lresp|llat|minlat|avglat|maxlat)=[^,)]*`)
	moment    = regexp.MustCompile(`[A-Z][a-z]{2} [A-Z][a-z]{2} [0-9 ]{2} [0-9:]{8} [A-Z]+ [0-9]{4}`)
)

// Shape is what an answer tells, without the values.
func Shape(word, answer string) []string {
	var out []string
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\n\r ")
		switch word {
		case "mntr":
			line, _, _ = strings.Cut(line, "\t")
			if strings.HasPrefix(line, "zk_version") {
				line = "zk_version"
			}
		case "conf", "envi":
			line, _, _ = strings.Cut(line, "=")
		case "srvr", "stat":
			if !strings.HasPrefix(line, " ") {
				line, _, _ = strings.Cut(line, ": ")
			}
		}
		if strings.HasSuffix(line, "_per_namespace") && !strings.Contains(line, "zkprobe-fields") {
			continue // what others have done there before
		}
		out = append(out, mask(line))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func mask(line string) string {
	line = moment.ReplaceAllString(line, "TIME")
	line = cutFields.ReplaceAllString(line, "$1=V")
	line = address.ReplaceAllString(line, "ADDR")
	line = hexNumber.ReplaceAllString(line, "HEX")
	if strings.HasPrefix(line, "zk_") || strings.Contains(line, "Digest") {
		return line // digits in names count
	}
	return number.ReplaceAllString(line, "N")
}

// varying are the probe's lines whose numbers tell nothing.
var varying = regexp.MustCompile(`^4lw\.(cons|wchs|gtmk|conf) `)

// Steady is a probe's line with what varies masked.
func Steady(line string) string {
	if !varying.MatchString(line) {
		return line
	}
	name, rest, _ := strings.Cut(line, " ")
	rest = number.ReplaceAllString(hexNumber.ReplaceAllString(rest, "N"), "N")
	if name == "4lw.cons" { // which connection comes first varies
		rest, _, _ = strings.Cut(rest, "(")
	}
	return name + " " + rest
}
