package hddsim

import (
	"maps"
	"slices"
)

// journal is the file system's: changed blocks of metadata are written to it together, then a commit block, with a
// flush between; later each goes to its place (as ext4's jbd2).
type journal struct {
	area       span
	at         int64
	home       map[int64]bool // places of the blocks that the running transaction has changed
	inodes     []*Inode
	committing bool
	waiting    []func() // for the commit after the one under way
	ticking    bool
}

const inodesPerBlock = 16

// touch notes a change of a file's inode.
func (j *journal) touch(v *Volume, f *Inode) {
	if f.changed && !f.logged {
		f.logged = true
		j.inodes = append(j.inodes, f)
	}
	j.touchAt(v, groupBytes+2*pageBytes+f.id/inodesPerBlock*pageBytes)
}

// touchAt notes a change of the block of metadata at pos.
func (j *journal) touchAt(v *Volume, pos int64) {
	j.home[pos%(v.dev.SizeBytes()/pageBytes*pageBytes)] = true
	if j.ticking {
		return
	}
	j.ticking = true
	v.m.After(v.p.CommitInterval, func() {
		j.ticking = false
		if len(j.home) > 0 {
			j.commit(v, func() {})
		}
	})
}

// commit is done when all that was changed before it is in the journal. Those who come while one is under way share
// the next.
func (j *journal) commit(v *Volume, done func()) {
	j.waiting = append(j.waiting, done)
	if !j.committing {
		j.begin(v)
	}
}

func (j *journal) begin(v *Volume) {
	done := j.waiting
	j.committing, j.waiting = true, nil
	end := func() {
		j.committing = false
		if len(j.waiting) > 0 {
			j.begin(v)
		}
		for _, f := range done {
			f()
		}
	}
	if len(j.home) == 0 {
		v.dev.Submit(&Request{Kind: Flush, Done: end})
		return
	}
	home := slices.Sorted(maps.Keys(j.home))
	j.home = map[int64]bool{}
	for _, f := range j.inodes {
		f.changed, f.logged = false, false
	}
	j.inodes = nil
	n := min(int64(len(home)+1)*pageBytes, j.area.len-pageBytes)
	if j.at+n+pageBytes > j.area.len {
		j.at = 0
	}
	pos := j.area.pos + j.at
	j.at += n + pageBytes
	v.dev.Submit(&Request{Kind: Write, Pos: pos, Len: n, Done: func() {
		v.dev.Submit(&Request{Kind: Flush, Done: func() {
			v.dev.Submit(&Request{Kind: Write, Pos: pos + n, Len: pageBytes, FUA: true, Done: func() {
				v.m.After(v.p.Expire, func() { j.settle(v, home) })
				end()
			}})
		}})
	}})
}

// settle writes blocks of metadata to their places.
func (j *journal) settle(v *Volume, home []int64) {
	for _, pos := range home {
		v.dev.Submit(&Request{Kind: Write, Pos: pos, Len: pageBytes, Done: func() {}})
	}
}
