package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	defaultLimit = 50
	maxLimit     = 1000
	maxRead      = 20 * chunk // entries that are read for one page
)

// List returns a page of entries, the newest first, or with Oldest the oldest first. A page may
// have no entries and more may follow: a limited number is read for one.
func (l *Log) List(ctx context.Context, q api.AuditQuery) (api.AuditPage, error) {
	if q.Cursor != "" && !isID(q.Cursor) {
		return api.AuditPage{}, fault.InvalidField("cursor", "isn't a cursor of this list")
	}
	limit := min(cmp.Or(q.PageSize, defaultLimit), maxLimit)
	page := api.AuditPage{Entries: []api.AuditEntry{}, Cursor: q.Cursor}
	for from, read := start(q), 0; read < maxRead; {
		found, err := l.store.after, error(nil)
		if !q.Oldest {
			found = l.store.before
		}
		got, err := found(ctx, from, chunk)
		if err != nil {
			return api.AuditPage{}, redisdb.Failed(err, "audit: read the log")
		}
		for i, s := range got {
			if ended(q, got[i].id) {
				page.More = false
				return page, nil
			}
			if len(page.Entries) == limit {
				page.More = true
				return page, nil
			}
			page.Cursor = got[i].id
			var e api.AuditEntry
			if json.Unmarshal([]byte(s.text), &e) == nil && matches(q, e) { // Verify reports what can't be read
				e.Hash, e.Key, e.MAC = s.hash, s.key, s.code
				page.Entries = append(page.Entries, e)
			}
		}
		if len(got) < chunk {
			page.More = false
			return page, nil
		}
		read += len(got)
		from, page.More = "("+got[len(got)-1].id, true
	}
	return page, nil
}

// start returns the position where a list begins.
func start(q api.AuditQuery) string {
	switch {
	case q.Cursor != "":
		return "(" + q.Cursor
	case q.Oldest && !q.From.IsZero():
		return strconv.FormatInt(q.From.UnixMilli(), 10)
	case q.Oldest:
		return "-"
	case !q.To.IsZero():
		return "(" + strconv.FormatInt(q.To.UnixMilli(), 10) + "-0"
	}
	return "+"
}

// ended reports whether a position is beyond the times of a query.
func ended(q api.AuditQuery, id string) bool {
	ms, _ := splitID(id)
	if q.Oldest {
		return !q.To.IsZero() && ms >= q.To.UnixMilli()
	}
	return !q.From.IsZero() && ms < q.From.UnixMilli()
}

func isID(s string) bool {
	return s != "" && len(s) < 40 && strings.Trim(s, "0123456789-") == "" && strings.Count(s, "-") == 1
}

func matches(q api.AuditQuery, e api.AuditEntry) bool {
	o := api.AuditObject{}
	if e.Object != nil {
		o = *e.Object
	}
	is := func(want, have string) bool { return want == "" || want == have }
	by := q.Who == "" || q.Who == e.Who.Name || q.Who == e.Who.Address || q.Who == e.Who.Session ||
		q.Who == e.Who.Kind || len(q.Who) >= 6 && strings.HasPrefix(e.Who.TokenID, q.Who)
	return by && is(q.Kind, o.Kind) && is(q.ID, o.ID) && is(string(q.Result), string(e.Result)) &&
		(q.Account == "" || q.Account == o.Account || q.Account == e.Who.Account ||
			o.Kind == "account" && q.Account == o.ID)
}

// Export writes entries as JSON lines, the oldest first.
// Each line is the text of the entry, with hash, key and mac after it.
func (l *Log) Export(ctx context.Context, q api.AuditQuery, w io.Writer) error {
	q.Oldest = true
	for from := start(q); ; {
		got, err := l.store.after(ctx, from, chunk)
		if err != nil {
			return redisdb.Failed(err, "audit: export the log")
		}
		for _, s := range got {
			var e api.AuditEntry
			readable := json.Unmarshal([]byte(s.text), &e) == nil
			if ended(q, s.id) {
				return nil
			}
			if readable && !matches(q, e) || !readable && !all(q) {
				continue
			}
			if _, err := io.WriteString(w, line(s)); err != nil {
				return fmt.Errorf("audit: export the log: %w", err)
			}
		}
		if len(got) < chunk {
			return nil
		}
		from = "(" + got[len(got)-1].id
	}
}

// all reports whether a query selects nothing but times.
func all(q api.AuditQuery) bool {
	q.From, q.To, q.Oldest = time.Time{}, time.Time{}, false
	return q == api.AuditQuery{}
}

// line returns an entry of the log as a line of JSON.
func line(s sealed) string {
	body, ok := strings.CutSuffix(s.text, "}")
	if !ok || !json.Valid([]byte(s.text)) {
		text, _ := json.Marshal(s.text) // for a string it can't fail
		body = `{"unreadable":` + string(text)
	}
	return fmt.Sprintf("%s,\"hash\":%q,\"key\":%q,\"mac\":%q}\n", body, s.hash, s.key, s.code)
}
