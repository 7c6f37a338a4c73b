package outbox

import (
	"cmp"
	"context"
	"html"
	"regexp"
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

// Mailings sends one content to many people, each by a message that has no record ([Mailing.Direct]). If a
// relay puts a message off, it becomes one of the outbox ([Mailing.Enqueue]).
type Mailings struct {
	*store
	intake   *Intake
	delivery *Delivery
}

// Mailing is a content that is ready to be sent.
type Mailing struct {
	mailings *Mailings
	shared   Shared
	account  accounts.Sender
	content  *sharedContent
	snapshot Snapshot

	from  string   // normal form of the sender's address
	wrong error    // its error
	ways  []string // beginnings of the links to unsubscribe
}

// Snapshot identifies a saved mailing. Its content doesn't change when a template or a setting does.
type Snapshot struct {
	Name     string           `json:"name"` // the content's name
	Opens    bool             `json:"opens,omitempty"`
	Clicks   bool             `json:"clicks,omitempty"`
	Template *api.TemplateRef `json:"template,omitempty"`
	Domain   string           `json:"domain,omitempty"` // of Message-IDs
	Links    []string         `json:"links,omitempty"`  // if params fill in links of the content
}

// Addressee is a recipient of a mailing, with their part of it.
type Addressee struct {
	ID       string // the message's id
	To       message.Address
	ListID   string         // its mailing list, or empty
	Params   map[string]any // as decoded JSON, with numbers as json.Number; may be nil
	Date     time.Time      // for the Date header
	Campaign *CampaignMail  // nil if it belongs to no campaign
}

// Mailing prepares a content. All its mail goes to the bulk lane. It returns the same errors as Submit, with
// the fields of a submit.
func (m *Mailings) Mailing(ctx context.Context, sh Shared) (*Mailing, error) {
	sh.Source, sh.Lane = sourceCampaign, api.Bulk
	b, wrong, err := m.intake.open(ctx, sh, nil)
	if b == nil {
		return nil, err
	}
	if err := joinFields(wrong, err); err != nil {
		return nil, err
	}
	if !sh.Preview { // a preview is not sent
		if err = m.MayName(ctx, sh, "from"); err == nil {
			err = b.deliverable(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return m.of(sh, b.account, b.content, Snapshot{Opens: b.added.Opens, Clicks: b.added.Clicks,
		Template: b.template, Links: linksOf(b.content.renderer.Content())}), nil
}

// MayName returns Forbidden, as Submit does, if the account may not use the sender or the gateway of sh. The
// field of the request that names the sender is field.
func (m *Mailings) MayName(ctx context.Context, sh Shared, field string) error {
	if !m.confined(sh.Bound) {
		return nil
	}
	account, err := m.Accounts.Resolve(ctx, sh.Account)
	if err == nil && sh.From != nil {
		err = m.metrics.refused("From", account.CheckSender(field, "From", sh.From.Address))
	}
	if err == nil {
		err = m.checkGateway(account, sh.Gateway)
	}
	return err
}

// of returns a content's mailing, with what is the same for all its mail.
func (m *Mailings) of(sh Shared, account accounts.Sender, content *sharedContent, f Snapshot) *Mailing {
	made := &Mailing{mailings: m, shared: sh, account: account, content: content, snapshot: f}
	made.from, made.wrong = message.NormalizeAddress(made.Content().From.Address)
	made.snapshot.Domain = domainOf(made.from)
	base := strings.TrimRight(made.Content().ServiceURL, "/")
	made.ways = []string{base + "/unsubscribe?t=", base + "/preferences?t="}
	return made
}

// Save stores a mailing's content under an id until Release, and replaces the previous content.
func (m *Mailing) Save(ctx context.Context, id string) (Snapshot, error) {
	s := m.mailings.store
	for range 2 { // it may expire in between
		if err := s.shared.put(ctx, 0, m.content); err != nil {
			return Snapshot{}, err
		}
		held, err := m.mailings.Hold(ctx, id, m.content.name)
		if err != nil {
			return Snapshot{}, err
		}
		if held {
			m.snapshot.Name = m.content.name
			return m.snapshot, nil
		}
	}
	return Snapshot{}, errUnshared
}

// Hold keeps a content under an id until Release, and replaces the previous one. It reports whether it is
// stored.
func (m *Mailings) Hold(ctx context.Context, id, content string) (bool, error) {
	word, err := mailingScript.RunReplicated(ctx, m.DB, []string{m.keys.mailings(0)},
		mailingArgs{Mailing: id, Name: content})
	if err != nil {
		return false, redisError(err, "store the mailing "+id)
	}
	return word.Word == "OK", nil
}

// Release removes a stored content. It stays for as long as messages need it.
func (m *Mailings) Release(ctx context.Context, id string) error {
	_, err := mailingScript.RunReplicated(ctx, m.DB, []string{m.keys.mailings(0)}, mailingArgs{Mailing: id})
	return redisError(err, "release the mailing "+id)
}

// Load returns a saved mailing. sh has its settings; its texts are the stored ones. It returns NotFound if
// the account or the content is gone.
func (m *Mailings) Load(ctx context.Context, sh Shared, f Snapshot) (*Mailing, error) {
	if err := m.clock.ready(ctx, m.DB.Client()); err != nil {
		return nil, redisError(err, "open a mailing")
	}
	account, err := m.Accounts.Resolve(ctx, sh.Account)
	if err != nil {
		return nil, err
	}
	r, err := m.shared.renderer(ctx, 0, f.Name)
	if err != nil {
		if err == errNoSharedContent {
			err = fault.Wrap(err, fault.NotFound, "ContentGone", "The content of the campaign is gone from Redis")
		}
		return nil, err
	}
	return m.of(sh, account, &sharedContent{name: f.Name, renderer: r}, f), nil
}

// Account returns the account that sends the mailing.
func (m *Mailing) Account() accounts.Sender { return m.account }

// Content returns what all its mail has.
func (m *Mailing) Content() render.Content { return m.content.renderer.Content() }

// Write returns a message as it would be sent, and its text. An error is about the content, or about
// something that the addressee lacks.
func (m *Mailing) Write(ctx context.Context, a Addressee) (*message.Composed, render.Mail, error) {
	e, err := m.envelope(a)
	if err != nil {
		return nil, render.Mail{}, err
	}
	return m.write(ctx, a, &e)
}

// envelope returns a message's envelope. If an address is invalid, it is as complete as possible.
func (m *Mailing) envelope(a Addressee) (envelope, error) {
	to, wrong := message.NormalizeAddress(a.To.Address)
	if wrong != nil {
		to, wrong = a.To.Address, fault.InvalidField("to", "%s", wrong)
	}
	sh := &m.shared
	e := envelope{Account: m.account.ID, Source: sourceCampaign, From: m.from, To: []string{to}, Tags: sh.Tags,
		Template:  m.snapshot.Template,
		additions: additions{ListID: a.ListID, Opens: m.snapshot.Opens, Clicks: m.snapshot.Clicks},
		Returns:   m.mailings.opts.BounceDomain != "", Bound: sh.Bound, Campaign: a.Campaign, preview: sh.Preview}
	e.MessageID = m.mailings.MessageID(m.snapshot, a.ID, m.account.ID, to)
	if sh.Preview {
		e.MessageID = "<preview@" + m.snapshot.Domain + ">"
	}
	return e, cmp.Or(m.wrong, wrong)
}

// MessageID returns the Message-ID header of a message that a saved mailing became.
func (m *Mailings) MessageID(f Snapshot, id, account, to string) string {
	return "<" + m.proof(id, account, []string{to}) + "@" + f.Domain + ">"
}

// write renders and signs a message, and completes its envelope.
func (m *Mailing) write(ctx context.Context, a Addressee, e *envelope) (*message.Composed, render.Mail,
	error) {
	s, r := m.mailings.store, m.content.renderer
	identity, err := s.sharedIdentity(a.ID, *e, r.Content())
	if err != nil {
		return nil, render.Mail{}, err
	}
	c, mail, err := r.Render(ctx, a.personal(), identity, true)
	if err != nil {
		return nil, mail, err
	}
	if c.Raw, err = s.Signer.Sign(ctx, s.owner(m.account, e.Bound), domainOf(c.From.Address), a.Date,
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

// Fill returns a mailing's text for everybody: without personal links and tracking. Its unsubscribe links
// lead to an address. Missing params are empty.
func (m *Mailing) Fill(ctx context.Context, params map[string]any, leave string) (render.Mail, error) {
	mail, err := m.content.renderer.Fill(ctx, params, leave)
	mail.HTML, mail.Text = m.mailings.withoutTokens(mail.HTML), m.mailings.withoutTokens(mail.Text)
	return mail, err
}

// Captive returns which parts of a rendered message, "html" and "text", show no way to unsubscribe. A text
// that is made from the HTML shows what the HTML does.
func (m *Mailing) Captive(mail render.Mail) []string {
	var parts []string
	if mail.HTML != "" && !mail.ShowsLink(m.ways...) {
		parts = append(parts, "html")
	}
	own := m.Content().Source.Text != "" || mail.HTML == ""
	if own && mail.Text != "" && !shows(mail.Text, m.ways...) {
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

// Stopped returns for each address the suppression that stops a mailing of a list to it, or nil.
func (m *Mailings) Stopped(ctx context.Context, account, list string, addresses []string) (
	[]*suppression.Entry, error) {
	if m.Suppressions == nil {
		return make([]*suppression.Entry, len(addresses)), nil
	}
	return m.Suppressions.Check(ctx, suppression.Question{Account: account, List: list, Bulk: true,
		Addresses: addresses})
}

// LinkOf returns a link as written in the content, before params filled it in. If params fill in links of the
// content and this link is not among them, it is cut: its query and fragment may be personal.
func (f Snapshot) LinkOf(address string) string {
	best, literal := "", -1
	for _, link := range f.Links {
		if link == address {
			return link
		}
		if parts := variables.Split(link, -1); len(parts) > 1 && fits(address, parts) {
			if n := len(strings.Join(parts, "")); n > literal {
				best, literal = link, n
			}
		}
	}
	switch {
	case literal >= 0:
		return best
	case len(f.Links) > 0:
		return address[:strings.IndexAny(address+"#", "?#")]
	}
	return address
}

// fits reports whether an address is made of parts in this order, with anything between them.
func fits(address string, parts []string) bool {
	rest, ok := strings.CutPrefix(address, parts[0])
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if !ok || i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return ok && strings.HasSuffix(rest, last)
}

// linksOf returns the links of a content if params fill in any of them; else none.
func linksOf(c render.Content) []string {
	sources := []string{c.Source.HTML, c.Options.Layout}
	for _, partial := range c.Options.Partials {
		sources = append(sources, partial)
	}
	var all []string
	filled := false
	for _, source := range sources {
		found := webAddress.FindAllString(source, -1)
		for _, match := range wholeLink.FindAllStringSubmatch(source, -1) {
			found = append(found, match[1])
		}
		for _, link := range found {
			link = html.UnescapeString(link)
			if strings.HasSuffix(link, ")") && strings.Count(link, "(") < strings.Count(link, ")") { // Markdown
				link = strings.TrimSuffix(link, ")")
			}
			filled = filled || variables.MatchString(link)
			if len(all) < mostLinks && !slices.Contains(all, link) {
				all = append(all, link)
			}
		}
	}
	if !filled {
		return nil
	}
	slices.Sort(all)
	return all
}

// An address in a content, before params fill it in: a web address, or a variable that is the whole target.
var (
	webAddress = regexp.MustCompile(`(?is)https?://(?:\{\{\{?.*?\}\}\}?|[^\s"'<>{}])+`)
	wholeLink  = regexp.MustCompile(`(?is)href\s*=\s*["']?\s*(\{\{\{?.*?\}\}\}?(?:\{\{\{?.*?\}\}\}?|[^\s"'<>{}])*)`)
	variables  = regexp.MustCompile(`(?s)\{\{\{?#.*\{\{\{?/.*?\}\}\}?|\{\{\{?.*?\}\}\}?`)
)

// mostLinks bounds the links of a content that are stored with it.
const mostLinks = 200
