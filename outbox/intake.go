package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/smtpsend"
)

// Intake accepts messages. Every source (single submit, mail merge, SMTP) gives it shared content and one
// entry for each message.
type Intake struct {
	*store
	backlogs sync.Map // by backlogOf: the last message that was accepted here is in it
}

// Sources of messages.
const (
	SourceAPI  = "api"
	SourceSMTP = "smtp"

	sourceCampaign = "campaign" // for campaign mail
)

// Shared is the content and the settings that the messages of one batch share. The zero value of a field
// means its default.
type Shared struct {
	Source  string // SourceAPI, SourceSMTP; shown with each message
	Account string // defaults to the default account

	From        *message.Address // defaults to the account's
	ReplyTo     []message.Address
	Headers     []message.Header
	Attachments []message.Attachment

	// The content: a stored template's, or given here. Subject and PreviewText replace the template's.
	Template                         string
	Subject, PreviewText, HTML, Text string
	// the texts are sent unchanged, not rendered with the params of each entry
	Plain  bool
	Format string // of HTML: html (the default) or markdown. A template has its own
	// a missing param is an error; defaults to the template's choice or Options.StrictWords
	Strict     *bool
	Locale, TZ string // default to the account's

	Raw []byte // a whole message (RFC 5322) instead of text and attachments; only for a single message

	ListID                  string // mailing list; adds its headers and honors its unsubscribes
	TrackOpens, TrackClicks *bool  // default to Track
	Track                   *bool  // both; defaults to the account's choice, then Options.Track
	BaseURL                 string // public address of links; defaults to Options.ServiceURL

	Lane          api.Lane     // defaults to transactional
	Priority      api.Priority // defaults to normal
	Gateway       string       // the only one to send through; defaults to the account's choice
	Attempts      int          // defaults to Options.Attempts
	gateways.Path              // to the relay
	RequireTLS    bool
	DSN           *api.DSN
	Tags          []string
	DeliverBy     *time.Time // nil for no limit

	Token      string          // id by which the quota of the access token is counted
	TokenQuota *api.TokenQuota // that token's quota; nil if it has none

	Trace string // carrier of its trace (package traces), or empty

	Bound       bool // submitted with a token that is bound to the account; see Options.Senders
	Preview     bool // nothing is sent: links and Message-ID of the messages prove nothing
	KeyRequired bool // entries without a Key are refused; also if Options.RequireKey or the account says so
}

// Entry is the part of one message.
type Entry struct {
	To, Cc, Bcc []message.Address
	Envelope    *message.Envelope // defaults to the addresses above
	MessageID   string            // defaults to one made of the message's id
	InReplyTo   string
	References  []string
	Params      json.RawMessage // an object, or empty
	SendAt      *time.Time      // defaults to now
	Metadata    json.RawMessage // an object, or empty

	// A key is accepted once for each account; the same key again returns the first answer. Optional.
	Key       string
	KeySuffix string // lets several entries share a Key
	// hashes of what the entry asks for, separated by blanks. The key stores the first one, and a key that
	// stores none of them is refused. Needed with a key
	Fingerprint func(*Batch) string
}

// Result is the answer to one entry.
type Result struct {
	ID        string // the message's id; empty if it was refused, or is only previewed
	MessageID string
	SendAt    time.Time
	Key       string // the entry's key, if the key was used; else empty
	Repeated  bool   // the key was used before; the rest is the first answer
	// state of the message that used the key before; empty if its record was lost
	State   api.MessageStatus
	Skipped *api.Skipped // suppressed recipients
	Preview []byte       // the rendered message, of previews only
	Err     error        // why the entry was refused; nil if it was accepted
}

// Batch is shared content, checked and ready for entries. Its methods are safe for concurrent use.
type Batch struct {
	in       *Intake
	shared   Shared
	account  accounts.Sender
	raw      *message.Composed // the message itself, of Shared.Raw
	content  *sharedContent    // the rendered words; stored once if stored is set
	stored   bool              // messages are rendered at each attempt; otherwise once, as they are accepted
	template *api.TemplateRef
	added    additions
	quotas   []quota          // the account's and the token's
	apis     []gateways.Relay // that its messages go through, if all of them are APIs; see carried
	began    time.Time
	timeout  time.Duration // for each step of a chunk; see accept

	weighing     sync.Mutex
	weighed      bool
	light, files int // bytes of the weighed message without and of its files and inlined CSS
}

const (
	chunkSize     = 250 // entries in one pipeline
	chunksAtOnce  = 4
	mergePreviews = 10 // messages that a dry run of a merge shows
	weighings     = 3  // messages rendered in full without success before a batch is refused
)

// baseTimeout is how long a submit may take before it answers that Redis is unreachable. The message may have
// been accepted even so; an idempotency key makes a repetition safe.
const baseTimeout = 2 * time.Second

// timeout is baseTimeout plus time for the size of the content: large files take longer to compose and to
// store.
func (sh Shared) timeout() time.Duration {
	const perSecond = 2 << 20
	size := len(sh.Raw) + len(sh.HTML) + len(sh.Text)
	for _, a := range sh.Attachments {
		size += len(a.Content)
	}
	return baseTimeout + time.Duration(size)*time.Second/perSecond
}

// one checks and composes a single message. All wrong fields are in one error.
func (in *Intake) one(ctx context.Context, sh Shared, e Entry) (*Batch, *newMessage, error) {
	b, wrong, err := in.open(ctx, sh, &e)
	if b == nil {
		return nil, nil, err
	}
	var m *newMessage
	if err == nil {
		m, err = b.message(ctx, e, true)
	}
	if err == nil {
		wrong = append(wrong, b.added.single(m.envelope.To)...)
	}
	wrong = slices.Concat(wrong, b.checkEntry(e, false), checkKey(b.shared, e))
	if err := joinFields(wrong, err); err != nil {
		return nil, nil, err
	}
	if err = b.deliverable(ctx); err == nil {
		err = b.carried(m)
	}
	return b, m, err
}

// open checks what a batch shares, and prepares its content. only is a single message's entry, or nil if
// there are many. It returns invalid fields apart from other errors, and no Batch without an account. A raw
// message's control headers complete shared settings and entry.
func (in *Intake) open(ctx context.Context, sh Shared, only *Entry) (*Batch, []fault.Field, error) {
	if err := in.clock.ready(ctx, in.DB.Client()); err != nil {
		return nil, nil, redisError(err, "accept message")
	}
	account, err := in.Accounts.Resolve(ctx, sh.Account)
	if err != nil {
		return nil, nil, err
	}
	sh.KeyRequired = sh.KeyRequired || in.opts.RequireKey || account.KeyRequired
	b := &Batch{in: in, shared: sh, account: account, began: in.clock.Now(), timeout: sh.timeout(),
		quotas: quotasOf(account.ID, account.Quota, sh.Token, sh.TokenQuota)}
	if only != nil && len(sh.Raw) > 0 {
		err = b.composeRaw(only)
	}
	added, wrong := in.additionsOf(b.shared, account)
	b.added, wrong = added, slices.Concat(in.Gateways.CheckPath(sh.Path), checkShared(b.shared, b.began), wrong)
	if _, bad := schedule.Zone(cmp.Or(sh.TZ, "UTC")); bad != nil {
		b.shared.TZ = "" // it is among the wrong fields; find the others too
	}
	if err != nil {
		return b, wrong, err
	}
	if b.raw == nil {
		b.stored = only == nil || sh.Template != "" && !sh.Plain || added.any()
		err = b.prepare(ctx)
	} else if added.any() {
		b.added.Base, b.added.Domain = in.publicURL(sh), domainOf(b.raw.From.Address)
	}
	return b, wrong, err
}

// deliverable returns an error if no relay could take the messages, or if they may not use the one they name.
func (b *Batch) deliverable(ctx context.Context) error {
	if b.in.confined(b.shared.Bound) {
		if err := b.in.checkGateway(b.account, b.shared.Gateway); err != nil {
			return err
		}
	}
	relays := b.account.Relays
	if id := b.shared.Gateway; id != "" {
		if err := b.in.gatewayExists(ctx, id); err != nil {
			return err
		}
		if relay, err := b.in.Gateways.Resolve(ctx, id); err == nil { // else its delivery waits for it
			relays = []gateways.Relay{relay}
		}
	} else if err := b.account.Ready(b.lane()); err != nil {
		return err
	}
	b.apis = routing.OnlyAPIs(relays, b.lane())
	return nil
}

// carried returns Unprocessable, with a reason of each gateway, if no relay can carry a message. An account
// with a relay that isn't an API is not asked: such a relay carries any message.
func (b *Batch) carried(m *newMessage) error {
	lacks := routing.Carried(b.apis, smtpsend.Message{From: m.envelope.From, To: m.envelope.To,
		RequireTLS: m.envelope.RequireTLS}, m.composed.Raw)
	if len(lacks) == 0 || len(lacks) < len(b.apis) {
		return nil
	}
	var fields fault.Fields
	var reasons []string
	for _, lack := range lacks {
		fields.Add(cmp.Or(lack.Field, "gateway"), "%s", lack)
		reasons = append(reasons, lack.Gateway+": it "+lack.Why)
	}
	e := fault.New(fault.Unprocessable, "MessageNotCarried",
		"No gateway can carry the message (%s). Change the message, or use a gateway of type "+
			"smtp", strings.Join(reasons, "; "))
	e.Fields = fields
	return e
}

// Accept accepts entries and returns a result for each: a refused entry doesn't stop the others. The error is
// about the batch as a whole; then nothing was accepted. Entries go to Redis in chunks, each with its own
// timeouts. You can split a batch of any size over any number of calls. Once Redis is unreachable or full,
// the remaining entries are refused without a try.
func (b *Batch) Accept(ctx context.Context, entries []Entry) ([]Result, error) {
	if err := b.weigh(ctx, entries); err != nil {
		return nil, err
	}
	results := make([]Result, len(entries))
	var stop firstUnavailable
	var group errgroup.Group
	group.SetLimit(chunksAtOnce)
	for chunk := range slices.Chunk(everybody(len(entries)), chunkSize) {
		group.Go(func() error {
			b.chunk(ctx, entries, results, chunk, &stop)
			return nil
		})
	}
	_ = group.Wait() // errors are in the results
	if err := stop.get(); err != nil &&
		!slices.ContainsFunc(results, func(r Result) bool { return r.Err == nil }) {
		return nil, err
	}
	return results, nil
}

// chunk accepts the entries at some places, in two round trips plus two if a recipient may be suppressed.
func (b *Batch) chunk(ctx context.Context, entries []Entry, results []Result, places []int,
	stop *firstUnavailable) {
	all, at := make([]*newMessage, 0, len(places)), make([]int, 0, len(places))
	for _, i := range places {
		err := stop.get()
		var m *newMessage
		if err == nil {
			m, err = b.entry(ctx, entries[i])
		}
		if err != nil {
			stop.note(err)
			results[i].Err = err
			continue
		}
		all, at = append(all, m), append(at, i)
	}
	b.in.accept(ctx, all, b.timeout)
	for n, m := range all {
		results[at[n]] = m.result
		stop.note(m.result.Err)
	}
}

// firstUnavailable is the first error of kind Unavailable. It is safe for concurrent use.
type firstUnavailable struct{ err atomic.Pointer[error] }

func (f *firstUnavailable) note(err error) {
	if fault.Is(err, fault.Unavailable) {
		f.err.CompareAndSwap(nil, &err)
	}
}

func (f *firstUnavailable) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Preview checks all entries, renders the first as they would be sent, and queues nothing.
func (b *Batch) Preview(ctx context.Context, entries []Entry) ([]Result, error) {
	if err := b.weigh(ctx, entries); err != nil {
		return nil, err
	}
	results, shown := make([]Result, len(entries)), 0
	for i, e := range entries {
		r := &results[i]
		m, err := b.message(ctx, e, false)
		if err == nil {
			r.MessageID = m.envelope.MessageID
			if shown < mergePreviews {
				shown++
				r.Preview, err = b.final(ctx, m)
			}
		}
		if err != nil {
			*r = Result{Err: err}
		}
	}
	return results, ctx.Err()
}

// prints returns two fingerprints of a request: without defaults that are written out, so that a client may
// start or stop writing them, and of the request as it is, which older keys have.
func (b *Batch) prints(asked api.SubmitRequest, of func(api.SubmitRequest) string) string {
	without, whole := of(b.withoutDefaults(asked)), of(asked)
	if without == whole {
		return whole
	}
	return without + " " + whole
}

// withoutDefaults removes the fields of a request that change nothing.
func (b *Batch) withoutDefaults(req api.SubmitRequest) api.SubmitRequest {
	if req.Lane == api.Transactional {
		req.Lane = ""
	}
	if req.Priority == api.Normal {
		req.Priority = ""
	}
	if isEmptyObject(req.Metadata) {
		req.Metadata = nil
	}
	if req.DeliveryAttempts == b.in.opts.Attempts() {
		req.DeliveryAttempts = 0
	}
	own := api.Address{Name: b.account.Name, Address: b.account.Email}
	if req.From != nil && *req.From == own {
		req.From = nil
	}
	if req.Render != nil && req.Render.Off && req.Template == "" && len(req.MailMerge) == 0 {
		req.Render = nil
	}
	req.Copy, req.SentMailPath = nil, ""
	req.Attachments = slices.Clone(req.Attachments)
	for i := range req.Attachments {
		req.Attachments[i].Encoding = ""
	}
	plain := b.shared
	plain.TrackOpens, plain.TrackClicks, plain.Track = nil, nil, nil
	usual, _ := b.in.additionsOf(plain, b.account)
	req.TrackOpens, req.TrackClicks, req.TrackingEnabled = nil, nil, nil
	if b.added.Opens != usual.Opens || b.added.Clicks != usual.Clicks {
		req.TrackOpens, req.TrackClicks = &b.added.Opens, &b.added.Clicks
	}
	return req
}

// isEmptyObject reports whether JSON is {}.
func isEmptyObject(raw json.RawMessage) bool {
	return strings.Join(strings.Fields(string(raw)), "") == "{}"
}

// tracedSubmit notes what a submit was about.
func tracedSubmit(span *telemetry.Span, req api.SubmitRequest, answer api.SubmitAnswer, err error) {
	if span == nil {
		return
	}
	span.Set("postroom.account", req.Account)
	span.Set("postroom.message_id", answer.QueueID)
	span.SetInt("postroom.messages", max(1, len(req.MailMerge)))
	if err != nil {
		span.Fail(cmp.Or(fault.CodeOf(err), "error"))
	}
}
