package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postroom/postroom/redisdb"
)

const (
	// shipBytes is about how much goes in one request: column stores like few and large ones.
	shipBytes = 8 << 20
	retryMin  = time.Second
	retryMax  = time.Minute
)

// ship sends what waits, the oldest first, until ctx ends.
func (a *Archive) ship(ctx context.Context) {
	for wait, failing := retryMin, false; ctx.Err() == nil; {
		sent, err := a.shipSome(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			if !failing {
				a.log.Error("the archive takes nothing; events wait on disk", "error", err)
			}
			failing = true
			redisdb.Pause(ctx, wait)
			wait = min(2*wait, retryMax)
			continue
		case err == nil && failing:
			a.log.Info("the archive takes events again")
			failing = false
		}
		wait = retryMin
		if !sent {
			select {
			case <-ctx.Done():
			case <-a.more:
			case <-time.After(retryMax): // what another process left here
			}
		}
	}
}

// shipSome sends as many of the oldest files as fit into one request; false when none waits.
func (a *Archive) shipSome(ctx context.Context) (bool, error) {
	files, _, err := a.spool()
	if err != nil || len(files) == 0 {
		return false, err
	}
	var body []byte
	var taken []string
	for _, f := range files {
		if len(body) > 0 && int64(len(body))+f.size > shipBytes {
			break
		}
		lines, err := os.ReadFile(filepath.Join(a.opts.Dir, f.name))
		if os.IsNotExist(err) {
			continue // there was no room for it
		}
		if err != nil {
			return false, err
		}
		body, taken = append(body, lines...), append(taken, f.name)
	}
	refused, err := a.post(ctx, body)
	if err != nil {
		return false, err
	}
	if refused != nil && len(taken) > 1 { // one of them may be to blame: they go one by one
		for _, name := range taken {
			if err := a.shipOne(ctx, name); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	for _, name := range taken {
		if err := a.settle(name, refused); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (a *Archive) shipOne(ctx context.Context, name string) error {
	lines, err := os.ReadFile(filepath.Join(a.opts.Dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	refused, err := a.post(ctx, lines)
	if err != nil {
		return err
	}
	return a.settle(name, refused)
}

// settle takes a file out of what waits: it was sent, or the store refuses it.
func (a *Archive) settle(name string, refused error) error {
	path := filepath.Join(a.opts.Dir, name)
	if refused == nil {
		return ignoreMissing(os.Remove(path))
	}
	a.metrics.refused.Inc()
	aside := filepath.Join(a.opts.Dir, "refused-"+strings.TrimPrefix(name, waiting))
	a.log.Error("the archive refuses events; they are kept in a file", "file", filepath.Base(aside), "error",
		refused)
	return ignoreMissing(os.Rename(path, aside))
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// post hands lines to the store. It tells a store that takes nothing now (an error) from one that will never
// take these lines (refused).
func (a *Archive) post(ctx context.Context, lines []byte) (refused, _ error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.opts.URL, bytes.NewReader(lines))
	if err != nil {
		return nil, fmt.Errorf("send events: the address of the archive (archive.url) is none")
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := a.opts.Client.Do(req)
	if err != nil {
		if u, ok := err.(*url.Error); ok { //nolint:errorlint // from Do; its text may hold a password
			err = u.Err
		}
		return nil, fmt.Errorf("send events: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	why := fmt.Errorf("answered %s: %s", resp.Status, strings.TrimSpace(string(said)))
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return why, nil
	}
	if resp.StatusCode/100 == 2 {
		return nil, nil
	}
	return nil, fmt.Errorf("send events: %w", why)
}
