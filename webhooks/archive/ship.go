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

	"github.com/postroom/postroom/internal/redisdb"
)

const (
	// shipBytes is about how much goes in one request: column stores like few and large ones.
	shipBytes = 8 << 20
	retryMin  = time.Second
	retryMax  = time.Minute
)

// ship sends waiting lines, oldest first, until ctx ends.
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

// shipSome sends as many of the oldest files as fit into one request. It returns false if none waits.
func (a *Archive) shipSome(ctx context.Context) (bool, error) {
	files, _, err := a.spool()
	if err != nil || len(files) == 0 {
		return false, err
	}
	var names []string
	size := int64(0)
	for _, f := range files {
		if size += f.size; len(names) > 0 && size > shipBytes {
			break
		}
		names = append(names, f.name)
	}
	return true, a.send(ctx, names...)
}

// send sends files in one request. If the store refuses them, they are sent one by one, because one of them
// may be the cause.
func (a *Archive) send(ctx context.Context, names ...string) error {
	var body []byte
	var taken []string
	for _, name := range names {
		lines, err := os.ReadFile(filepath.Join(a.opts.Dir, name))
		if os.IsNotExist(err) {
			continue // makeRoom dropped it
		}
		if err != nil {
			return err
		}
		body, taken = append(body, lines...), append(taken, name)
	}
	if len(taken) == 0 {
		return nil
	}
	refused, err := a.post(ctx, body)
	if err != nil {
		return err
	}
	for _, name := range taken {
		if refused != nil && len(taken) > 1 {
			err = a.send(ctx, name)
		} else {
			err = a.settle(name, refused)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle removes a file that was sent, or renames one that the store refuses.
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

// post sends lines to the store. It returns an error if the store takes nothing now, and refused if it will
// never take these lines.
func (a *Archive) post(ctx context.Context, lines []byte) (refused, _ error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.opts.URL, bytes.NewReader(lines))
	if err != nil {
		return nil, fmt.Errorf("send events: archive.url isn't a valid URL")
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
