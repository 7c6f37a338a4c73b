package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// appendToDay adds lines to the file of today. They are on disk when it returns.
func (a *Archive) appendToDay(lines []byte) error {
	f, err := os.OpenFile(filepath.Join(a.opts.Dir, dayOf(a.opts.Now())), os.O_APPEND|os.O_CREATE|os.O_WRONLY,
		0o640)
	if err != nil {
		return err
	}
	return writeAndClose(f, lines)
}

func writeAndClose(f *os.File, lines []byte) error {
	_, err := f.Write(lines)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// waiting is the prefix of files that wait for the store.
const waiting = "waiting-"

// putAside writes lines to a new file, to be sent.
func (a *Archive) putAside(lines []byte) error {
	if err := a.makeRoom(int64(len(lines))); err != nil {
		return err
	}
	name := filepath.Join(a.opts.Dir, fmt.Sprintf("%s%020d.ndjson", waiting, a.opts.Now().UnixNano()))
	f, err := os.OpenFile(name+".part", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if err := writeAndClose(f, lines); err != nil {
		return err
	}
	if err := os.Rename(name+".part", name); err != nil {
		return err
	}
	select {
	case a.more <- struct{}{}:
	default:
	}
	return nil
}

// makeRoom drops the oldest waiting files beyond MaxSpool.
func (a *Archive) makeRoom(size int64) error {
	files, total, err := a.spool()
	if err != nil {
		return err
	}
	for _, f := range files {
		if total+size <= a.opts.MaxSpool {
			return nil
		}
		if err := os.Remove(filepath.Join(a.opts.Dir, f.name)); err != nil {
			return err
		}
		total -= f.size
		a.metrics.lost.Add(float64(f.size))
		a.log.Error("archived events dropped: the store takes nothing, and the limit archive.maxSpool is reached",
			"file", f.name, "bytes", f.size)
	}
	return nil
}

// spooled is a file that waits.
type spooled struct {
	name string
	size int64
}

// spool lists the waiting files, the oldest first.
func (a *Archive) spool() (files []spooled, total int64, _ error) {
	entries, err := os.ReadDir(a.opts.Dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), waiting) || !strings.HasSuffix(e.Name(), ".ndjson") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it has been sent
		}
		files = append(files, spooled{e.Name(), info.Size()})
		total += info.Size()
	}
	slices.SortFunc(files, func(x, y spooled) int { return strings.Compare(x.name, y.name) })
	return files, total, nil
}
