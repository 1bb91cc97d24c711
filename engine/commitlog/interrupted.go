package commitlog

import (
	"strings"

	"platter/engine/segment"
	"platter/io/disk"
)

// finishInterrupted completes, or takes back, what the last process had begun: .deleted files go (perhaps later: they count for nothing); .cleaned
// ones were not finished and go; a .log.swap replaces the segments that it covers (its indexes are made
// anew); index files without a .log go. It returns the listing as it is then.
func (l *Log) finishInterrupted(infos []disk.Info) ([]disk.Info, error) {
	changed := false
	logs := map[int64]bool{}
	var swaps []int64
	for _, in := range infos {
		base, suffix, ok := segment.ParseName(in.Name)
		if ok && suffix == segment.LogSuffix {
			logs[base] = true
		}
		if ok && suffix == segment.LogSuffix+segment.SwapSuffix {
			swaps = append(swaps, base)
			logs[base] = true
		}
	}
	for _, in := range infos {
		base, suffix, ok := segment.ParseName(in.Name)
		if in.IsDir || !ok {
			continue
		}
		orphan := !logs[base] && (suffix == segment.IndexSuffix || suffix == segment.TimeIndexSuffix || suffix == segment.TxnIndexSuffix)
		unfinished := strings.HasSuffix(suffix, segment.DeletedSuffix) || strings.HasSuffix(suffix, segment.CleanedSuffix)
		swapIndex := strings.HasSuffix(suffix, segment.SwapSuffix) && suffix != segment.LogSuffix+segment.SwapSuffix
		if !orphan && !unfinished && !swapIndex {
			continue
		}
		remove := l.o.FS.Remove
		if strings.HasSuffix(suffix, segment.DeletedSuffix) {
			remove = l.removeFile
		}
		if err := remove(l.pathOf(in.Name)); err != nil && !disk.IsNotExist(err) {
			return nil, err
		}
		changed = true
	}
	for _, base := range swaps {
		if err := l.finishSwap(base, logs); err != nil {
			return nil, err
		}
	}
	if !changed && len(swaps) == 0 {
		return infos, nil
	}
	if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
		return nil, err
	}
	return l.o.FS.ReadDir(l.o.Dir)
}

// finishSwap puts a compacted segment in the place of those that it was made from.
func (l *Log) finishSwap(base int64, logs map[int64]bool) error {
	path := l.pathOf(segment.LogName(base) + segment.SwapSuffix)
	f, err := l.o.FS.Open(path, disk.ReadOnly)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	sc := segment.NewScanner(f, 0, size, segment.ScanOptions{NextOffset: base})
	for sc.Next() {
	}
	end, err := sc.NextOffset(), sc.Err()
	sc.Close()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	for other := range logs {
		if other < base || other >= max(end, base+1) {
			continue
		}
		suffixes := []string{segment.IndexSuffix, segment.TimeIndexSuffix, segment.TxnIndexSuffix}
		if other != base {
			suffixes = append(suffixes, segment.LogSuffix)
		}
		for _, suffix := range suffixes {
			name := strings.TrimSuffix(segment.LogName(other), segment.LogSuffix) + suffix
			if err := l.o.FS.Remove(l.pathOf(name)); err != nil && !disk.IsNotExist(err) {
				return err
			}
		}
	}
	return l.o.FS.Rename(path, l.pathOf(segment.LogName(base)))
}
