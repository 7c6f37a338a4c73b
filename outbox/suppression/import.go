package suppression

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/textlines"
)

const (
	importBatch = 2000               // lines that are added with one round trip
	importKept  = 7 * 24 * time.Hour // lifetime of an import's result
	importSaved = time.Second        // interval between two saves of the progress
	importDead  = time.Minute        // without progress for this time, the process of an import has ended
	badShown    = 100                // bad lines that are reported with their error

	importTimeout = 20 * time.Second // how long an import waits while Redis is unreachable
)

// Import adds the entries of a CSV file while it reads the file, and returns the result. o has the values for
// fields that lines omit. Lines about accounts other than bound are errors, if the caller is confined to it.
// [Store.Progress] returns the progress under o.ID, while the import runs and for a week.
//
// An interrupted import has to be repeated from the beginning, which does no harm. It is interrupted with an
// error when the file breaks off, or Redis is unreachable for more than 20 seconds. If its process dies, its
// progress says so after a minute.
func (s *Store) Import(ctx context.Context, bound string, r io.Reader, o api.SuppressionImportOptions) (
	api.SuppressionImport, error) {
	given := Entry{Reason: Reason(o.Reason), Account: o.Account, List: o.List, Source: o.Source}
	given.Reason = cmp.Or(given.Reason, Manual)
	if given.Source == "" {
		given.Source = "csv"
	}
	if bound != "" && given.Account == "" {
		given.Account = bound
	}
	if err := s.checkImport(ctx, bound, given, o.ID); err != nil {
		return api.SuppressionImport{}, err
	}
	if err := s.opts.importRoom(ctx, given.Account, o.Size); err != nil {
		return api.SuppressionImport{}, err
	}
	i := &importing{s: s, bound: bound, given: given}
	var err error
	if i.lines, err = textlines.New(r, ""); err != nil {
		return api.SuppressionImport{}, wrongFile(err)
	}
	i.state = importState{Account: bound, SuppressionImport: api.SuppressionImport{ID: o.ID, State: "running",
		Started: s.now().UTC(), Errors: []api.BadLine{}}}
	i.state.ID = cmp.Or(i.state.ID, strings.ToLower(rand.Text()))
	err = i.run(ctx)
	i.state.State = "done"
	if err != nil {
		i.state.State, i.state.Error = "interrupted", importError(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if saved := i.save(ctx); err == nil {
		err = saved
	}
	return i.state.SuppressionImport, err
}

// checkImport checks the values for all lines, and whether the id is in use.
func (s *Store) checkImport(ctx context.Context, bound string, given Entry, id string) error {
	if err := mayChange(bound, given.Account); err != nil {
		return err
	}
	given.Domain = "example.com"
	if _, wrong := given.Normal("", s.now()); len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	if id == "" {
		return nil
	}
	_, err := s.Progress(ctx, bound, id)
	if err == nil {
		return fault.New(fault.Conflict, "ImportExists", "There is already an import with this ID")
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// importError returns the reason of an interruption, without internals.
func importError(err error) string {
	switch {
	case fault.Is(err, fault.Unavailable):
		return "The message store is not available"
	case fault.Is(err, fault.Invalid):
		return "Its first line can't be read"
	case fault.CodeOf(err) == "QuotaExceeded":
		return err.Error()
	}
	return "The file broke off"
}

// importState is an import as it is stored in Redis.
type importState struct {
	Account string `json:"account,omitempty"` // the account that its caller was confined to
	api.SuppressionImport
}

// importing is the state of a running import.
type importing struct {
	s     *Store
	bound string
	given Entry
	lines *textlines.Reader
	state importState
	batch []Entry
	saved time.Time
}

// run reads to the end of the file.
func (i *importing) run(ctx context.Context) error {
	if err := i.save(ctx); err != nil {
		return err
	}
	var l *layout
	var separator byte
	for {
		text, err := i.lines.Next()
		if errors.Is(err, textlines.ErrLong) || errors.Is(err, textlines.ErrCharset) ||
			errors.Is(err, textlines.ErrNUL) {
			i.state.Lines++
			i.bad(err.Error())
			continue
		}
		if err != nil {
			flushed := i.flush(ctx)
			if err == io.EOF {
				err = nil
			}
			if err == nil && l == nil && i.state.Lines == 0 {
				err = wrongFile(textlines.ErrEmpty)
			}
			return cmp.Or(err, flushed)
		}
		line := string(text)
		if comma, ok := textlines.Separator(text); ok && i.lines.Number == 1 {
			separator = comma
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if l == nil {
			var headings bool
			if l, headings, err = layoutOf(line, separator); err != nil {
				return wrongFile(fmt.Errorf("its first line %w", err))
			}
			if headings {
				continue
			}
		}
		i.state.Lines++
		i.line(l, line)
		if len(i.batch) >= importBatch || time.Since(i.saved) > importSaved {
			if err := i.flush(ctx); err != nil {
				return err
			}
		}
	}
}

func wrongFile(err error) error {
	return fault.InvalidField("file", "%s", err)
}

// line handles one line.
func (i *importing) line(l *layout, line string) {
	e, err := l.entry(line, i.given)
	if err != nil {
		i.bad(err.Error())
		return
	}
	if err := mayChange(i.bound, e.Account); err != nil {
		i.bad("belongs to another scope than your account's")
		return
	}
	normal, wrong := e.Normal("", i.s.now())
	if len(wrong) > 0 {
		i.bad(wrong[0].Key + " " + wrong[0].Message)
		return
	}
	i.batch = append(i.batch, normal)
}

func (i *importing) bad(reason string) {
	i.state.Bad++
	if len(i.state.Errors) < badShown {
		i.state.Errors = append(i.state.Errors, api.BadLine{Line: i.lines.Number, Reason: reason})
	}
}

// flush adds the batch, and saves the progress from time to time.
func (i *importing) flush(ctx context.Context) error {
	if err := i.s.opts.importRoom(ctx, i.given.Account, i.lines.Bytes); err != nil {
		return err
	}
	if err := i.s.hasRoom(ctx, i.batch); err != nil {
		return err
	}
	added := 0
	err := lease.Persist(ctx, i.s.log, "lines of a suppression import", importTimeout, func() (err error) {
		added, err = i.s.add(ctx, i.batch, i.s.now())
		return err
	})
	if err != nil {
		return err
	}
	i.state.Added += added
	i.state.Known += len(i.batch) - added
	i.batch = i.batch[:0]
	if time.Since(i.saved) < importSaved {
		return nil
	}
	return i.save(ctx)
}

func (i *importing) save(ctx context.Context) error {
	i.saved = time.Now()
	i.state.Updated, i.state.Bytes = i.s.now().UTC(), i.lines.Bytes
	text, err := json.Marshal(i.state)
	if err != nil {
		return redisdb.Failed(err, "suppression: write down an import")
	}
	if err := i.s.db.Client().Set(ctx, importKey(i.state.ID), text, importKept).Err(); err != nil {
		return redisdb.Failed(err, "suppression: write down an import")
	}
	return nil
}

func importKey(id string) string { return redisdb.Key(0, "suppression", "import", id) }

// Progress returns the progress of an import. A caller that is confined to an account sees its own imports
// only.
func (s *Store) Progress(ctx context.Context, bound, id string) (api.SuppressionImport, error) {
	none := fault.New(fault.NotFound, "ImportNotFound", "There is no such import in the last week")
	text, err := s.db.Client().Get(ctx, importKey(id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return api.SuppressionImport{}, none
	}
	if err != nil {
		return api.SuppressionImport{}, redisdb.Failed(err, "suppression: read an import")
	}
	var state importState
	if err := json.Unmarshal(text, &state); err != nil {
		return api.SuppressionImport{}, redisdb.Failed(err, "suppression: decode an import")
	}
	if bound != "" && bound != state.Account {
		return api.SuppressionImport{}, none
	}
	if state.State == "running" && s.now().Sub(state.Updated) > importDead {
		state.State, state.Error = "interrupted", "The process that ran it has ended"
	}
	return state.SuppressionImport, nil
}
