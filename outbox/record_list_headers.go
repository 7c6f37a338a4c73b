package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox/links"
	"github.com/postroom/postroom/outbox/templates/render"
)

// additions are what Postroom adds to a message when it is rendered: a mailing list's headers, links to
// Postroom that count clicks, and the pixel that counts opens. They contain the message's id. So a message
// with additions is rendered at each attempt, from its shared content or from the submitted raw message.
type additions struct {
	ListID string `json:"list,omitempty"` // mailing list whose unsubscribes count; empty if none
	Opens  bool   `json:"opens,omitempty"`
	Clicks bool   `json:"clicks,omitempty"`

	// Only of a raw message; others have both in their shared content.
	Base   string `json:"base,omitempty"`   // base URL of links
	Domain string `json:"domain,omitempty"` // the author's
}

func (a additions) any() bool { return a.ListID != "" || a.Opens || a.Clicks }

// identity is the identity of a message with its additions. base is the public address of links, domain the
// author's. Only an attempt to send the message writes tokens that open a page: who holds one has the mail. A
// message that is shown before, or in a dry run, has links of the same kind that lead nowhere.
func (s *store) identity(id string, e envelope, base, domain string) (render.Identity, error) {
	n := render.Identity{MessageID: e.MessageID, Envelope: &message.Envelope{From: e.From, To: e.To}}
	if e.Campaign != nil { // older programs that answer for absent people honor it (RFC 3834 section 3.1.8)
		n.Headers = []message.Header{{Name: "Precedence", Value: "bulk"}}
	}
	base = strings.TrimRight(base, "/")
	if s.Tokens == nil || base == "" {
		return n, nil
	}
	about := signedtoken.Token{Account: e.Account, MessageID: id, Recipient: signedtoken.Whole}
	if len(e.To) == 1 {
		about.Recipient = 0
		personal := about
		personal.List, personal.Address = e.ListID, e.To[0]
		token, err := s.sign(signedtoken.Unsubscribe, personal, e.preview)
		if err != nil {
			return n, fmt.Errorf("make the unsubscribe link of message %s: %w", id, err)
		}
		n.UnsubscribeURL, n.PreferencesURL = base+"/unsubscribe?t="+token, base+"/preferences?t="+token
	}
	if e.ListID != "" && n.UnsubscribeURL != "" {
		n.Headers = append(n.Headers,
			message.Header{Name: "List-ID", Value: "<" + e.ListID + "." + domain + ">"},
			message.Header{Name: "List-Unsubscribe", Value: "<" + n.UnsubscribeURL + ">"},
			message.Header{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"})
	}
	if e.Opens || e.Clicks {
		n.Links = func() (links.Options, error) { return s.counted(base, about, e) }
	}
	return n, nil
}

// sharedIdentity is identity for a message of shared content.
func (s *store) sharedIdentity(id string, e envelope, c render.Content) (render.Identity, error) {
	return s.identity(id, e, c.ServiceURL, domainOf(c.From.Address))
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// withAdditions is a raw message with its additions, signed at a time.
func (s *store) withAdditions(ctx context.Context, id string, e envelope, owner dkim.Owner, at time.Time,
	raw []byte) ([]byte, error) {
	n, err := s.identity(id, e, e.Base, e.Domain)
	if err != nil {
		return nil, err
	}
	var html func(string) (string, error)
	if n.Links != nil {
		html = func(page string) (string, error) {
			o, err := n.Links()
			if err != nil {
				return "", err
			}
			return links.Scan(page).Rewrite(o)
		}
	}
	raw, err = message.Mark(raw, n.Headers, html)
	if err != nil {
		return nil, err
	}
	return s.Signer.Sign(ctx, owner, e.Domain, at, raw)
}

// changes reports whether a message that was stored whole is sent otherwise.
func (r row) changes() bool { return r.envelope.additions.any() || r.corrected() }

// corrected reports whether To and Cc name a replay's recipients instead of the original ones.
func (r row) corrected() bool { return r.envelope.Added > 0 && !r.envelope.Raw }

// changed is a message that was stored whole, with its additions or its corrected recipients, signed.
func (s *store) changed(ctx context.Context, r row, owner dkim.Owner, raw []byte) ([]byte, error) {
	if r.envelope.additions.any() {
		return s.withAdditions(ctx, r.id, r.envelope, owner, redisdb.Time(r.created), raw)
	}
	raw, author, err := message.Readdress(raw, r.readdressed)
	if err != nil {
		return nil, err
	}
	return s.Signer.Sign(ctx, owner, domainOf(author), redisdb.Time(r.created), raw)
}

// correct is a personalization with the corrected recipients.
func (r row) correct(p render.Personalization) render.Personalization {
	p.To, p.Cc = r.readdressed(p.To), r.readdressed(p.Cc)
	return p
}

// readdressed returns To or Cc with a replay's recipients instead of the ones they replace. A list without
// any of these stays as it is: they were in Bcc.
func (r row) readdressed(list []message.Address) []message.Address {
	var now []message.Address
	former := map[string]bool{}
	for i, to := range r.envelope.To {
		if r.status.Recipients[i].Status == rcptReplaced {
			former[to] = true
		} else if i >= len(r.envelope.To)-r.envelope.Added {
			now = append(now, message.Address{Address: to})
		}
	}
	replaced := func(a message.Address) bool {
		address, _ := message.NormalizeAddress(a.Address) // an address with an error has no recipient
		return former[address]
	}
	at := slices.IndexFunc(list, replaced)
	if at < 0 {
		return list
	}
	return slices.Insert(slices.DeleteFunc(slices.Clone(list), replaced), at, now...)
}

// sign makes a link's token: for its purpose, or for a preview, without its subject.
func (s *store) sign(p signedtoken.Purpose, about signedtoken.Token, preview bool) (string, error) {
	if preview {
		p, about = signedtoken.Preview, signedtoken.Token{MessageID: about.MessageID, Recipient: about.Recipient}
	}
	return s.Tokens.Sign(p, about)
}

// counted returns how the links of html become links to Postroom, and the pixel that counts opens.
func (s *store) counted(base string, about signedtoken.Token, e envelope) (o links.Options, err error) {
	o.Keep = []string{base + "/unsubscribe", base + "/preferences"}
	if e.Opens {
		token, err := s.sign(signedtoken.Open, about, e.preview)
		if err != nil {
			return o, err
		}
		o.Pixel = base + "/o/" + token
	}
	if e.Clicks {
		o.Link = func(target string) (string, error) {
			to := about
			to.URL = target
			token, err := s.sign(signedtoken.Click, to, e.preview)
			return base + "/c/" + token, err
		}
	}
	return o, nil
}
