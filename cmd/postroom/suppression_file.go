package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/postroom/postroom/api"
)

type suppressionsImportCmd struct {
	File string `arg:"" help:"CSV file, or - for standard input. With headings (address or email, domain, reason, account, list, expires, source, …), or one address per line."`
	scopeFlags
	Reason string `enum:"unsubscribe,hard_bounce,spam_report,manual" default:"manual" help:"Reason, if a line has none."`
	Source string `default:"csv" help:"Source, if a line has none."`
}

func (c *suppressionsImportCmd) Run(s *session) error {
	file, size, err := s.open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	options := api.SuppressionImportOptions{ID: strings.ToLower(rand.Text()), Reason: c.Reason,
		Account: c.Account, List: c.List, Source: c.Source}
	stop := s.applied(size, func(ctx context.Context) (int64, error) {
		so, err := api.GetSuppressionImport.Do(ctx, s.client, options.ID)
		return so.Bytes, err
	})
	answer, err := api.ImportSuppressions.Do(s, s.client, file, options)
	stop()
	if err != nil {
		return s.brokenOff(options.ID, err)
	}
	return s.done(answer, answer.Bad > 0, func() {
		s.say("%s: %d added, %d known already, %d left out", plural(answer.Lines, "line"), answer.Added, answer.Known,
			answer.Bad)
		s.badLines(answer.Errors, answer.Bad)
	})
}

// appliedPoll is the interval at which the progress of an import is read. Postroom stores it each second.
const appliedPoll = 500 * time.Millisecond

// applied shows how much of a file was applied, as far tells, until stop is called. What was sent would
// say little: all of a file may be in buffers of the connection before its first line is applied. A failed
// look is made up for by the next.
func (s *session) applied(size int64, far func(context.Context) (int64, error)) (stop func()) {
	ctx, cancel := context.WithCancel(s)
	bar, done := s.bar(int(size), "importing", progressbar.OptionShowBytes(true)), make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, appliedPoll) == nil {
			if bytes, err := far(ctx); err == nil {
				_ = bar.Set64(bytes)
			}
		}
		_ = bar.Clear()
	}()
	return func() {
		cancel()
		<-done
	}
}

// brokenOff adds to an error how far a failed import came.
func (s *session) brokenOff(id string, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s), 5*time.Second)
	defer cancel()
	so, unknown := api.GetSuppressionImport.Do(ctx, s.client, id)
	if unknown != nil || so.Lines == 0 {
		return err
	}
	return fmt.Errorf("%w\nread by then: %s, %d of them added; import the file again for the rest, "+
		"what is there already does no harm", err, plural(so.Lines, "line"), so.Added)
}

// open opens a file for reading; -: standard input, of which no size is known: -1.
func (c *console) open(name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(c.in), -1, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	if !info.Mode().IsRegular() {
		return file, -1, nil
	}
	return file, info.Size(), nil
}

type suppressionsExportCmd struct {
	File string `arg:"" optional:"" default:"-" help:"File to write. It must not exist, unless you give --force. Defaults to standard output."`
	suppressionFlags
	Force bool `help:"Overwrite an existing file."`
}

func (c *suppressionsExportCmd) Run(s *session) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	if c.File == "-" {
		return api.ExportSuppressions.Do(s, s.client, q, s.out)
	}
	lines := &lineCounter{}
	_, err = s.export(c.File, c.Force, func(w io.Writer) error {
		return api.ExportSuppressions.Do(s, s.client, q, io.MultiWriter(w, lines))
	})
	if err != nil {
		return err
	}
	out := struct {
		Exported int `json:"exported"`
	}{lines.n - 1}
	return s.said(out, nil, "%s written to %s", plural(out.Exported, "suppression"), c.File)
}

// export writes a temporary file and renames it when it is complete. It returns its size.
func (s *session) export(name string, force bool, write func(w io.Writer) error) (int64, error) {
	if _, err := os.Stat(name); err == nil && !force {
		return 0, usage("%s is there already: say --force to write over it", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".postroom-export-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(file.Name()) }() // renamed by then, or not needed
	bar := s.bar(-1, "exporting", progressbar.OptionShowBytes(true))
	err = write(io.MultiWriter(file, bar))
	_ = bar.Clear()
	size, sought := file.Seek(0, io.SeekCurrent)
	if err := errors.Join(err, sought, file.Close()); err != nil {
		return 0, err
	}
	return size, os.Rename(file.Name(), name)
}

// lineCounter counts lines. No field of an export has a line break.
type lineCounter struct{ n int }

// Write implements io.Writer.
func (l *lineCounter) Write(p []byte) (int, error) {
	l.n += bytes.Count(p, []byte{'\n'})
	return len(p), nil
}
