package broker

import (
	"fmt"
	"io"
	"text/tabwriter"

	"platter/coord/config"
	"platter/io/profile"
)

// profiles is what is under each data directory, in the order of log.dirs.
type profiles []profile.Profile

func readProfiles(dirs []string) (ps profiles) {
	for _, dir := range dirs {
		ps = append(ps, profile.Read(dir))
	}
	return ps
}

// of is the profile of one of the directories.
func (ps profiles) of(dir string) profile.Profile {
	for _, p := range ps {
		if p.Path == dir {
			return p
		}
	}
	return profile.Profile{Path: dir, Reason: "not one of log.dirs"}
}

// device names what a directory's schedule is of: the disks of the first directory that has one in common with it.
func (ps profiles) device(p profile.Profile) string {
	for _, o := range ps {
		if o.Shares(p) {
			return o.ID()
		}
	}
	return p.ID()
}

// explain writes what is under each directory, and which settings follow from that.
func (ps profiles) explain(c *config.Broker, w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i, p := range ps {
		fmt.Fprint(tw, "\nDISK\n")
		for _, r := range p.Rows() {
			fmt.Fprintf(tw, "%s\t%s\n", r.Name, r.Value)
		}
		for j, o := range ps {
			if j != i && p.Shares(o) {
				fmt.Fprintf(tw, "shares its disk with\t%s\n", o.Path)
			}
		}
		for _, r := range p.Defaults().Rows() {
			value, source := r.Value, "suits this disk"
			if v, from := c.Value(r.Name); from != config.Default && v != "0" {
				value, source = v, "is set"
			}
			fmt.Fprintf(tw, "%s\t%s (%s)\n", r.Name, value, source)
		}
	}
	return tw.Flush()
}
