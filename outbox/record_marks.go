package outbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/feedback/tracking/links"
	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/templates/batch"
)

// marks are what Postroom adds to a message of its own, when the message is written: header fields of a mailing list, links that lead over
// Postroom, and the picture that counts opens. They name the message, and so whatever has marks is written anew each time it is needed: from
// its letter, or, where it was handed in raw, from that.
type marks struct {
	ListID string `json:"list,omitempty"` // whose unsubscribes are heeded; empty: of no list
	Opens  bool   `json:"opens,omitempty"`
	Clicks bool   `json:"clicks,omitempty"`

	// Of a raw message, which has no letter to tell them:
	Base   string `json:"base,omitempty"`   // public address that links lead to
	Domain string `json:"domain,omitempty"` // of the author
}

func (m marks) any() bool { return m.ListID != "" || m.Opens || m.Clicks }

// name is what a letter calls a message by, and what it adds to that message alone. Base is where its links lead, domain the author's.
func (s *store) name(id string, e envelope, base, domain string) (batch.Identity, error) {
	n := batch.Identity{MessageID: e.MessageID, Envelope: message.Envelope{From: e.From, To: e.To}}
	base = strings.TrimRight(base, "/")
	if s.Tokens == nil || base == "" {
		return n, nil
	}
	about := signedtoken.Token{Account: e.Account, MessageID: id, Recipient: signedtoken.Whole}
	if len(e.To) == 1 {
		about.Recipient = 0
		personal := about
		personal.List, personal.Address = e.ListID, e.To[0]
		token, err := s.Tokens.Sign(signedtoken.Unsubscribe, personal)
		if err != nil {
			return n, fmt.Errorf("make the unsubscribe link of message %s: %w", id, err)
		}
		n.UnsubscribeURL, n.PreferencesURL = base+"/unsubscribe?t="+token, base+"/preferences?t="+token
	}
	if e.ListID != "" && n.UnsubscribeURL != "" {
		n.Headers = []message.Header{
			{Name: "List-ID", Value: "<" + e.ListID + "." + domain + ">"},
			{Name: "List-Unsubscribe", Value: "<" + n.UnsubscribeURL + ">"},
			{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"},
		}
	}
	if e.Opens || e.Clicks {
		n.HTML = func(html string) (string, error) { return s.tracked(html, base, about, e.marks) }
	}
	return n, nil
}

// nameIn is name for a message of a letter.
func (s *store) nameIn(id string, e envelope, l batch.Content) (batch.Identity, error) {
	return s.name(id, e, l.ServiceURL, domainOf(l.From.Address))
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// marked is a raw message with its marks, signed.
func (s *store) marked(ctx context.Context, id string, e envelope, key *api.DKIM, raw []byte) ([]byte, error) {
	n, err := s.name(id, e, e.Base, e.Domain)
	if err != nil {
		return nil, err
	}
	raw, err = message.Mark(raw, n.Headers, n.HTML)
	if err != nil || s.Signer == nil {
		return raw, err
	}
	return s.Signer.Sign(ctx, key, e.Domain, raw)
}

// tracked leads the links of a message over Postroom, and adds the picture that counts opens.
func (s *store) tracked(html, base string, about signedtoken.Token, m marks) (string, error) {
	o := links.Options{Keep: []string{base + "/unsubscribe", base + "/preferences"}}
	if m.Opens {
		token, err := s.Tokens.Sign(signedtoken.Open, about)
		if err != nil {
			return "", err
		}
		o.Pixel = base + "/o/" + token
	}
	if m.Clicks {
		o.Link = func(target string) (string, error) {
			to := about
			to.URL = target
			token, err := s.Tokens.Sign(signedtoken.Click, to)
			return base + "/c/" + token, err
		}
	}
	return links.Rewrite(html, o)
}
