package outbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/outbox/templates/render"
)

// Letters sends one content to many people, each by a message that has no record ([Letter.Direct]). A message
// that a relay puts off becomes one of the outbox ([Letter.Adopt]).
type Letters struct {
	*store
	intake   *Intake
	delivery *Delivery
}

// Letter is a content that is ready to be sent.
type Letter struct {
	letters *Letters
	shared  Shared
	account accounts.Sender
	content *sharedContent
	frozen  Frozen

	from  string   // normal form of the sender's address
	wrong error    // of it
	ways  []string // beginnings of the links to unsubscribe
}

// Frozen is how a letter is found again: its content does not change when a template or a setting does.
type Frozen struct {
	Name     string           `json:"name"` // of the content
	Opens    bool             `json:"opens,omitempty"`
	Clicks   bool             `json:"clicks,omitempty"`
	Template *api.TemplateRef `json:"template,omitempty"`
	Domain   string           `json:"domain,omitempty"` // of Message-IDs
	Links    []string         `json:"links,omitempty"`  // of a content with links that params fill in
}

// Addressee is whom a letter goes to, and what is theirs of it.
type Addressee struct {
	ID       string // of the message
	To       message.Address
	ListID   string         // mailing list that it is mail of; empty: none
	Params   map[string]any // as decoded JSON, with numbers as json.Number; nil: none
	Date     time.Time      // of the Date header
	Campaign *CampaignMail  // nil: of none
}

// Letter prepares a content. All its mail is of the bulk lane. Faults are those of Submit; their fields are
// those of a submit.
func (l *Letters) Letter(ctx context.Context, sh Shared) (*Letter, error) {
	sh.Source, sh.Lane = SourceCampaign, api.Bulk
	b, wrong, err := l.intake.open(ctx, sh, nil)
	if b == nil {
		return nil, err
	}
	if err := joinFields(wrong, err); err != nil {
		return nil, err
	}
	if !sh.Preview { // a preview is not sent
		if err = l.MayName(ctx, sh, "from"); err == nil {
			err = b.deliverable(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return l.of(sh, b.account, b.content, Frozen{Opens: b.added.Opens, Clicks: b.added.Clicks,
		Template: b.template, Links: linksOf(b.content.renderer.Content())}), nil
}

// MayName returns Forbidden, as Submit does, if the account may not use the sender or the gateway of sh. The
// field of the request that names the sender is field.
func (l *Letters) MayName(ctx context.Context, sh Shared, field string) error {
	if !l.confined(sh.Bound) {
		return nil
	}
	account, err := l.Accounts.Resolve(ctx, sh.Account)
	if err == nil && sh.From != nil {
		err = l.metrics.refused("From", account.CheckSender(field, "From", sh.From.Address))
	}
	if err == nil {
		err = l.checkGateway(account, sh.Gateway)
	}
	return err
}

// of returns the letter of a content, with what is the same for all its mail.
func (l *Letters) of(sh Shared, account accounts.Sender, content *sharedContent, f Frozen) *Letter {
	made := &Letter{letters: l, shared: sh, account: account, content: content, frozen: f}
	made.from, made.wrong = message.NormalizeAddress(made.Content().From.Address)
	made.frozen.Domain = domainOf(made.from)
	base := strings.TrimRight(made.Content().ServiceURL, "/")
	made.ways = []string{base + "/unsubscribe?t=", base + "/preferences?t="}
	return made
}

// Freeze stores the content of a letter under an id, in place of the one before, until Release.
func (l *Letter) Freeze(ctx context.Context, id string) (Frozen, error) {
	s := l.letters.store
	for range 2 { // it may expire in between
		if err := s.shared.put(ctx, 0, l.content); err != nil {
			return Frozen{}, err
		}
		held, err := l.letters.Hold(ctx, id, l.content.name)
		if err != nil {
			return Frozen{}, err
		}
		if held {
			l.frozen.Name = l.content.name
			return l.frozen, nil
		}
	}
	return Frozen{}, errUnshared
}

// Hold keeps a content under an id, in place of the one before, until Release. false: it is not stored.
func (l *Letters) Hold(ctx context.Context, id, content string) (bool, error) {
	word, err := letterScript.RunReplicated(ctx, l.DB, []string{l.keys.letters(0)},
		letterArgs{Letter: id, Name: content})
	if err != nil {
		return false, redisError(err, "store the letter "+id)
	}
	return word.Word == "OK", nil
}

// Release lets go of a stored content. It stays for as long as messages need it.
func (l *Letters) Release(ctx context.Context, id string) error {
	_, err := letterScript.RunReplicated(ctx, l.DB, []string{l.keys.letters(0)}, letterArgs{Letter: id})
	return redisError(err, "let go of the letter "+id)
}

// Thaw returns a stored letter. sh has its settings; its words are those that were stored. NotFound: the
// account or the content is gone.
func (l *Letters) Thaw(ctx context.Context, sh Shared, f Frozen) (*Letter, error) {
	if err := l.clock.ready(ctx, l.DB.Client()); err != nil {
		return nil, redisError(err, "open a letter")
	}
	account, err := l.Accounts.Resolve(ctx, sh.Account)
	if err != nil {
		return nil, err
	}
	r, err := l.shared.renderer(ctx, 0, f.Name)
	if err != nil {
		if err == errNoSharedContent {
			err = fault.Wrap(err, fault.NotFound, "ContentGone", "The content of the campaign is gone from Redis")
		}
		return nil, err
	}
	return l.of(sh, account, &sharedContent{name: f.Name, renderer: r}, f), nil
}

// Account returns the account that sends the letter.
func (l *Letter) Account() accounts.Sender { return l.account }

// Content returns what all its mail has.
func (l *Letter) Content() render.Content { return l.content.renderer.Content() }

// Write returns a message as it would be sent, and the words in it. An error is a fault of the content or of
// what the addressee lacks.
func (l *Letter) Write(ctx context.Context, a Addressee) (*message.Composed, render.Mail, error) {
	e, err := l.envelope(a)
	if err != nil {
		return nil, render.Mail{}, err
	}
	return l.write(ctx, a, &e)
}

// envelope returns the envelope of a message. It is as whole as can be if an address is wrong.
func (l *Letter) envelope(a Addressee) (envelope, error) {
	to, wrong := message.NormalizeAddress(a.To.Address)
	if wrong != nil {
		to, wrong = a.To.Address, fault.InvalidFields([]fault.Field{{Key: "to", Message: wrong.Error()}})
	}
	sh := &l.shared
	e := envelope{Account: l.account.ID, Source: SourceCampaign, From: l.from, To: []string{to}, Tags: sh.Tags,
		Template:  l.frozen.Template,
		additions: additions{ListID: a.ListID, Opens: l.frozen.Opens, Clicks: l.frozen.Clicks},
		Returns:   l.letters.opts.BounceDomain != "", Bound: sh.Bound, Campaign: a.Campaign, preview: sh.Preview}
	e.MessageID = l.letters.MessageID(l.frozen, a.ID, l.account.ID, to)
	if sh.Preview {
		e.MessageID = "<preview@" + l.frozen.Domain + ">"
	}
	return e, cmp.Or(l.wrong, wrong)
}

// MessageID returns the Message-ID header of a message that a frozen letter became.
func (l *Letters) MessageID(f Frozen, id, account, to string) string {
	return "<" + l.proof(id, account, []string{to}) + "@" + f.Domain + ">"
}

// write renders and signs a message, and completes its envelope.
func (l *Letter) write(ctx context.Context, a Addressee, e *envelope) (*message.Composed, render.Mail,
	error) {
	s, r := l.letters.store, l.content.renderer
	identity, err := s.sharedIdentity(a.ID, *e, r.Content())
	if err != nil {
		return nil, render.Mail{}, err
	}
	c, mail, err := r.Render(ctx, a.personal(), identity, true)
	if err != nil {
		return nil, mail, err
	}
	if c.Raw, err = s.Signer.Sign(ctx, s.owner(l.account, e.Bound), domainOf(c.From.Address), a.Date,
		c.Raw); err != nil {
		return nil, mail, err
	}
	if c.Size() > s.opts.MaxSize {
		return nil, mail, s.tooLarge(c.Size())
	}
	e.Subject, e.UTF8, e.EightBit, e.Size = c.Subject, c.SMTPUTF8, c.EightBit, c.Size()
	return c, mail, nil
}

func (a Addressee) personal() render.Personalization {
	return render.Personalization{To: []message.Address{a.To}, Decoded: a.Params, Date: redisdb.Millis(a.Date)}
}

// Fill returns the words of a letter for everybody: nobody's links, no tracking. The links to leave lead to
// an address. What params lack is empty.
func (l *Letter) Fill(ctx context.Context, params map[string]any, leave string) (render.Mail, error) {
	mail, err := l.content.renderer.Fill(ctx, params, leave)
	mail.HTML, mail.Text = l.letters.withoutTokens(mail.HTML), l.letters.withoutTokens(mail.Text)
	return mail, err
}

// Captive returns which parts of a rendered message, "html" and "text", show no way to unsubscribe. A text
// that is made from the HTML shows what the HTML does.
func (l *Letter) Captive(mail render.Mail) []string {
	var parts []string
	if mail.HTML != "" && !mail.ShowsLink(l.ways...) {
		parts = append(parts, "html")
	}
	own := l.Content().Source.Text != "" || mail.HTML == ""
	if own && mail.Text != "" && !shows(mail.Text, l.ways...) {
		parts = append(parts, "text")
	}
	return parts
}

// shows reports whether one of some addresses that end in "?t=" is in a text. That is rarer than their
// beginning, which many words begin with.
func shows(text string, ways ...string) bool {
	for end := 0; ; {
		i := strings.Index(text[end:], "?t=")
		if i < 0 {
			return false
		}
		end += i + len("?t=")
		if slices.ContainsFunc(ways, func(way string) bool { return strings.HasSuffix(text[:end], way) }) {
			return true
		}
	}
}

// Stopped returns for each address the suppression that stops a letter of a list to it, or nil.
func (l *Letters) Stopped(ctx context.Context, account, list string, addresses []string) (
	[]*suppression.Entry, error) {
	if l.Suppressions == nil {
		return make([]*suppression.Entry, len(addresses)), nil
	}
	return l.Suppressions.Check(ctx, suppression.Question{Account: account, List: list, Bulk: true,
		Addresses: addresses})
}
