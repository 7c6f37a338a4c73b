package audience

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/textlines"
)

const (
	importBatch = 2000             // lines that are applied together
	importSaved = time.Second      // longest age of a batch, and interval of saves without changes
	importPulse = importDead / 6   // interval of saves while no lines arrive
	importWaits = 20 * time.Second // how long an import waits while Redis is unreachable
	// how long an import waits for others that change the same subscribers
	importConflict = 5 * time.Millisecond
)

// Run imports a file while it reads it, and returns the result. Get returns its progress while it runs and
// for a week.
//
// To continue an interrupted import, call Run with the same file, id and options: applied lines are read
// again, compared, and not applied twice. Another file or other options return Unprocessable, code
// ImportDiffers. A running import returns Conflict, code ImportRunning, and a finished import Conflict, code
// ImportExists. But after a dry run the id is free for the real import.
//
// It is interrupted, with an error, when the file breaks off, or Redis is unreachable for more than 20
// seconds; and without an error when Stop asks it to. If its process dies, its progress says so after a
// minute.
func (m *Imports) Run(ctx context.Context, bound string, r io.Reader, o api.SubscriberImportOptions) (
	api.SubscriberImport, error) {
	i, err := m.prepare(ctx, bound, &o)
	if err != nil {
		return api.SubscriberImport{}, err
	}
	if i.rows, err = openRows(r, o); err != nil {
		return api.SubscriberImport{}, err
	}
	if err := i.begin(ctx); err != nil {
		return api.SubscriberImport{}, err
	}
	err = i.run(ctx)
	i.state.State, i.state.Error = importEnded, ""
	if err != nil {
		i.state.State, i.state.Error = importBroken, importError(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	saved := i.save(ctx)
	switch {
	case errors.Is(err, errStopped):
		return i.state.SubscriberImport, nil
	case err == nil && !errors.Is(saved, errStopped): // a wish to stop that came too late
		err = saved
	}
	return i.state.SubscriberImport, err
}

// errStopped ends an import that was asked to stop.
var errStopped = errors.New("it was stopped")

// importError returns the reason of an interruption, without internals.
func importError(err error) string {
	switch {
	case errors.Is(err, errStopped):
		return "It was stopped"
	case fault.Is(err, fault.Unavailable):
		return "The message store is not available"
	case fault.CodeOf(err) != "":
		return err.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "Its process was stopped"
	}
	return "The file broke off"
}

// importing is an import that runs.
type importing struct {
	m       *Imports
	s       *Subscribers
	account string
	o       api.SubscriberImportOptions
	wishes  []wish
	terms   terms
	rows    *rows
	seen    *seen
	check   checker
	state   importState
	earlier doubt // what attempts before this one may have applied
	skip    int   // lines that an earlier run applied
	saved   time.Time
}

// prepare checks options.
func (m *Imports) prepare(ctx context.Context, bound string, o *api.SubscriberImportOptions) (*importing,
	error) {
	account, err := requestAccount(bound, o.Account)
	if err != nil {
		return nil, err
	}
	if err := m.s.Account(ctx, account); err != nil {
		return nil, err
	}
	o.Account, o.State = account, cmp.Or(o.State, Subscribed.String())
	o.Existing, o.Charset = cmp.Or(o.Existing, "merge"), strings.ToLower(o.Charset)
	i := &importing{m: m, s: m.s, account: account, seen: newSeen(), terms: terms{source: SourceImport,
		resubscribe: o.Resubscribe}}
	var f faults
	if o.Consent != "" {
		i.terms.consent = &api.Consent{Source: SourceImport, Text: o.Consent}
		f.text("consent", o.Consent, maxText)
	}
	f.options(o)
	if i.wishes, err = m.s.importWishes(ctx, account, o, &f); err != nil {
		return nil, err
	}
	if err := fault.InvalidFields(f.Fields); err != nil {
		return nil, err
	}
	i.o = *o
	return i, m.s.hasRoom(ctx, account, o.Size)
}

// options checks the options that are words.
func (f *faults) options(o *api.SubscriberImportOptions) {
	if o.ID != "" && !importIDs.MatchString(o.ID) {
		f.Add("id", "must be up to 63 letters, digits and . _ -, and start with a letter or digit")
	}
	o.Tag = f.text("tag", o.Tag, maxTag)
	switch o.Existing {
	case "merge", "skip", "replace":
	default:
		f.Add("existing", "must be merge, skip or replace")
	}
	switch o.Charset {
	case "", textlines.UTF8, textlines.UTF16LE, textlines.UTF16BE, textlines.Windows:
	default:
		f.Add("charset", "must be utf-8, utf-16le, utf-16be or windows-1252")
	}
	if o.Confirm && o.State != Pending.String() {
		f.Add("confirm", "requires state pending")
	}
}

// importWishes returns what an import does to the lists of its subscribers.
func (s *Subscribers) importWishes(ctx context.Context, account string, o *api.SubscriberImportOptions,
	f *faults) ([]wish, error) {
	if o.Confirm && !o.DryRun && s.confirmations != nil {
		if _, err := s.confirmations.base(); err != nil {
			return nil, err
		}
	}
	state := stateNamed(o.State)
	switch {
	case state == None:
		f.Add("state", "must be subscribed, pending or left")
	case len(o.ListID) == 0 && o.Confirm:
		f.Add("listId", "is required with confirm")
	case state == Subscribed && len(o.ListID) > 0 && o.Consent == "" && !o.JSONL:
		f.Add("consent", "is required with state subscribed: the consent text that all subscribers agreed to")
	}
	asked := make([]api.SubscriptionRequest, len(o.ListID))
	for i, id := range o.ListID {
		asked[i] = api.SubscriptionRequest{ListID: id, State: Pending.String()}
	}
	var wrong faults
	wishes, err := s.wishes(ctx, account, asked, nil, &wrong)
	for _, w := range wrong.Fields {
		f.Add("listId", "%s", w.Message)
	}
	for i := range wishes {
		wishes[i].state = state
	}
	return wishes, err
}

// hasRoom returns an error if an import is larger than the quota of its account allows.
func (s *Subscribers) hasRoom(ctx context.Context, account string, bytes int64) error {
	if s.opts.ImportRoom == nil {
		return nil
	}
	return s.opts.ImportRoom(ctx, account, func() (used, more int, err error) { return 0, int(bytes), nil })
}

// begin takes the id of the import, or takes an interrupted one over.
func (i *importing) begin(ctx context.Context) error {
	options, err := i.fingerprint()
	if err != nil {
		return err
	}
	now := i.s.now().UTC()
	i.state = importState{Options: options, SubscriberImport: api.SubscriberImport{ID: i.o.ID,
		DryRun: i.o.DryRun, Started: now, Errors: []api.BadLine{}, Skipped: map[string]int{},
		Delimiter: i.rows.delimiter()}}
	if i.o.ID == "" {
		i.state.ID = strings.ToLower(rand.Text())
	}
	if i.rows.layout != nil {
		i.state.Ignored = i.rows.layout.ignored
	}
	old, err := i.m.load(ctx, i.account, i.state.ID)
	switch {
	case err != nil:
		return err
	case old == nil:
	case old.State == importRuns:
		return fault.New(fault.Conflict, "ImportRunning", "Import %q is running", i.state.ID)
	case old.DryRun && !i.o.DryRun:
		i.state.text = old.text
	case old.State == importEnded:
		return fault.New(fault.Conflict, "ImportExists", "Import %q is already done. Use another "+
			"ID", i.state.ID)
	case old.Options != options:
		return i.differs("other options")
	default:
		i.state, i.skip = *old, old.Lines
	}
	i.state.State, i.state.Error, i.state.Holder, i.state.Stop = importRuns, "", rand.Text(), false
	if err := i.save(ctx); errors.Is(err, errStopped) {
		return fault.New(fault.Conflict, "ImportRunning", "Import %q is running", i.state.ID)
	} else if err != nil {
		return err
	}
	return i.m.enlist(ctx, i.account, &i.state)
}

// fingerprint returns a hash of the options, except for options that may differ when the import continues.
func (i *importing) fingerprint() (string, error) {
	o := i.o
	o.ID, o.Size = "", 0
	text, err := json.Marshal(o)
	if err != nil {
		return "", redisdb.Failed(err, "encode the options of an import")
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), nil
}

func (i *importing) differs(what string) error {
	return fault.New(fault.Unprocessable, "ImportDiffers",
		"Import %q was interrupted with %s. Continue it with the same file and options", i.state.ID, what)
}

// save stores the progress. errStopped: somebody asked the import to stop, or took it over.
func (i *importing) save(ctx context.Context) error {
	i.saved, i.state.Updated = time.Now(), i.s.now().UTC()
	done, err := i.m.store(ctx, i.account, &i.state)
	if done || err != nil {
		return err
	}
	has, err := i.m.load(ctx, i.account, i.state.ID)
	if err != nil {
		return err
	}
	if has != nil && has.Stop && has.Holder == i.state.Holder {
		i.state.text = has.text // the next saved state comes after the wish to stop
	}
	return errStopped
}

// run reads the file and has its lines applied while it reads.
func (i *importing) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	batches, applied := make(chan *batch, 1), make(chan error, 1)
	go func() {
		err := i.apply(ctx, batches)
		if err != nil {
			stop(err)
		}
		applied <- err
	}()
	read := i.read(ctx, batches)
	close(batches)
	return cmp.Or(<-applied, read)
}

// apply applies batches in their order.
func (i *importing) apply(ctx context.Context, batches <-chan *batch) error {
	pulse := time.NewTicker(importPulse)
	defer pulse.Stop()
	for {
		select {
		case b, ok := <-batches:
			if !ok {
				return nil
			}
			if err := i.applyBatch(ctx, b); err != nil {
				return err
			}
		case <-pulse.C:
			if err := i.insist(ctx, func() error { return i.save(ctx) }); err != nil {
				return err
			}
		}
	}
}

// insist calls do. It waits while Redis is unreachable for a moment, as during a failover, and calls do
// again.
func (i *importing) insist(ctx context.Context, do func() error) error {
	return lease.Persist(ctx, i.s.log, "lines of a subscriber import", importWaits, do)
}
