package audience

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/signedtoken"
)

// ConfirmationParts are what confirmations need. All are required.
type ConfirmationParts struct {
	Subscribers *Subscribers
	Tokens      *signedtoken.Ring
	// Submit submits a message; outbox.Intake implements it.
	Submit     func(ctx context.Context, r api.SubmitRequest) (api.SubmitAnswer, error)
	ServiceURL func() string // base of links; empty if none
}

// ConfirmationOptions are the settings newsletter.* about confirmations.
type ConfirmationOptions struct {
	Expiry time.Duration // how long a link is good for; defaults to 168h
	PerDay int           // mails that ask an address in an account in a day; 0 means any number

	Registry prometheus.Registerer // nil if nothing is counted
}

const defaultConfirmExpiry = 168 * time.Hour

// Confirmations asks people by mail whether they want the subscriptions that somebody made for them, takes
// their answers, and welcomes them. It is safe for concurrent use by any number of processes.
type Confirmations struct {
	ConfirmationParts
	expiry  time.Duration
	perDay  int
	metrics *confirmMetrics
}

// NewConfirmations returns the confirmations of subscribers, which from now on send the emails for changes
// that subscribers make. Call it before the subscribers are used.
func NewConfirmations(p ConfirmationParts, o ConfirmationOptions) (*Confirmations, error) {
	if p.Subscribers == nil || p.Tokens == nil || p.Submit == nil || p.ServiceURL == nil {
		return nil, errors.New("new confirmations: a part is missing")
	}
	c := &Confirmations{ConfirmationParts: p, expiry: cmp.Or(o.Expiry, defaultConfirmExpiry), perDay: o.PerDay,
		metrics: newConfirmMetrics(o.Registry)}
	p.Subscribers.confirmations = c
	return c, nil
}

// base returns the URL that links begin with. Without one no one could confirm, so it returns Unprocessable,
// code NoPublicUrl.
func (c *Confirmations) base() (string, error) {
	if base := strings.TrimRight(c.ServiceURL(), "/"); base != "" {
		return base, nil
	}
	return "", fault.New(fault.Unprocessable, "NoPublicUrl",
		"The confirmation link requires Postroom's public URL. Set serviceUrl")
}

// Confirmation is the data that a link confirms.
type Confirmation struct {
	Account string
	Email   string
	Locale  string  // the subscriber's; empty if not known
	Lists   []*List // lists that still exist

	made time.Time
}

// Names returns the names of the lists with commas between.
func (c Confirmation) Names() string { return joinedNames(c.Lists) }

func joinedNames(lists []*List) string {
	names := make([]string, len(lists))
	for i, list := range lists {
		names[i] = list.Name
	}
	return strings.Join(names, ", ")
}

// Masked returns the address so that only its owner recognizes it.
func (c Confirmation) Masked() string {
	local, domain, _ := strings.Cut(c.Email, "@")
	for _, first := range local {
		return string(first) + "…@" + domain
	}
	return "…"
}

func linkTooOld() error {
	return fault.New(fault.Conflict, CodeLinkTooOld, "This link has expired, or its subscription has ended")
}

// CodeLinkTooOld is the error code for a link that was valid once.
const CodeLinkTooOld = "ConfirmationTooOld"

// Read returns what a link confirms. It changes nothing. NotFound: the link is not one of ours, or not whole,
// or the lists are gone. Conflict, code CodeLinkTooOld: it was good once.
func (c *Confirmations) Read(ctx context.Context, token string) (Confirmation, error) {
	t, err := c.Tokens.Read(signedtoken.Confirm, token)
	if err != nil {
		c.metrics.links.WithLabelValues("forged").Inc()
		return Confirmation{}, fault.Wrap(err, fault.NotFound, "UnknownLink",
			"This link is invalid. Copy the whole link from the email")
	}
	s := c.Subscribers
	found := Confirmation{Account: t.Account, Email: t.Address, made: t.Time()}
	if !s.now().Before(found.made.Add(c.expiry)) {
		c.metrics.links.WithLabelValues("late").Inc()
		return found, linkTooOld()
	}
	for id := range strings.SplitSeq(t.List, ",") {
		list, err := s.Lists.Find(ctx, id)
		switch {
		case err == nil && list.Account == t.Account:
			found.Lists = append(found.Lists, list)
		case err != nil && !fault.Is(err, fault.NotFound):
			return found, err
		}
	}
	if len(found.Lists) == 0 {
		return found, fault.New(fault.NotFound, "ListNotFound", "The list of this link no longer exists")
	}
	return found, nil
}

// Visit is the request that confirms.
type Visit struct {
	RemoteAddress string // IP address; only its network is kept
	Words         string // what the visitor agreed to, as the page said it
}

// Confirm subscribes a link's subscriber to its lists. A confirmed subscription stays as it is, and the
// answer is the same. It returns the same errors as Read, and Conflict, code AddressSuppressed, if the
// address bounced or complained since. A subscription that ended after the link was made needs a new link.
func (c *Confirmations) Confirm(ctx context.Context, token string, v Visit) (Confirmation, error) {
	found, err := c.Read(ctx, token)
	if err != nil {
		return found, err
	}
	s, now := c.Subscribers, c.Subscribers.now()
	t := terms{source: SourceConfirmed, resubscribe: true, consent: &api.Consent{Source: SourceConfirmed,
		Text: clipped(v.Words, maxText), Time: &now, IP: v.RemoteAddress}}
	proof, err := s.proof(ctx, found.Account, t)
	if err != nil {
		return found, err
	}
	for range tries {
		_, ordinal, old, err := s.find(ctx, found.Account, folded(found.Email))
		if err != nil {
			return found, err
		}
		if old == nil {
			return found, c.late()
		}
		done, err := c.confirm(ctx, &found, ordinal, old, t, proof)
		if done || err != nil {
			return found, err
		}
	}
	return found, contended("of a confirmation")
}

// confirm is Confirm for a record. It reports whether the record still had the old version.
func (c *Confirmations) confirm(ctx context.Context, found *Confirmation, ordinal uint32, old *record,
	t terms,
	proof subscription) (bool, error) {
	s := c.Subscribers
	found.Locale = old.locale
	var wishes []wish
	var before []*List
	for _, list := range found.Lists {
		switch old.stateOn(list.Number) {
		case Pending:
			wishes = append(wishes, wish{list: list, state: Subscribed})
		case Subscribed:
			before = append(before, list)
		}
	}
	if len(wishes) == 0 {
		if len(before) == 0 {
			return false, c.late()
		}
		c.metrics.links.WithLabelValues("again").Inc()
		c.welcome(ctx, found.Account, ordinal, old, before) // a crash may have kept the first one from it
		return true, nil
	}
	stopped, err := s.stops(ctx, found.Account, old.email, wishes)
	if err != nil {
		return false, err
	}
	next := old.clone()
	d := s.decide(next, found.Account, wishes, stopped, t, proof)
	if len(d.changes) == 0 {
		return false, fault.New(fault.Conflict, "AddressSuppressed", "This address can't be subscribed: %s",
			d.skipped[0].Reason)
	}
	if err := c.tell(ctx, found.Account, old, d.changes, found.Lists); err != nil {
		return false, err
	}
	done, err := s.commit(ctx, found.Account, &change{ordinal: ordinal, old: old, new: next, lists: d.changes},
		d)
	if !done || err != nil {
		return false, err
	}
	c.metrics.links.WithLabelValues("confirmed").Inc()
	c.forget(ctx, askedKey(found.Account, folded(old.email)))
	c.welcome(ctx, found.Account, ordinal, next, d.welcome)
	return true, nil
}

func (c *Confirmations) late() error {
	c.metrics.links.WithLabelValues("late").Inc()
	return linkTooOld()
}

// Again asks a subscriber again to confirm a pending subscription. Limited, code TooManyConfirmations: the
// address was asked often enough for a day. Conflict, code NotSubscribed: it has no subscription to confirm.
func (c *Confirmations) Again(ctx context.Context, bound string, of api.SubscriberAccount, subscriber,
	listID string) (api.ConfirmationSent, error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return api.ConfirmationSent{}, err
	}
	s := c.Subscribers
	list, err := s.Lists.of(ctx, account, listID)
	if err != nil {
		return api.ConfirmationSent{}, err
	}
	ordinal, r, err := s.lookup(ctx, account, subscriber)
	if err != nil {
		return api.ConfirmationSent{}, err
	}
	switch r.stateOn(list.Number) {
	case Subscribed:
		return api.ConfirmationSent{}, nil
	case Pending:
	default:
		return api.ConfirmationSent{}, fault.New(fault.Conflict, "NotSubscribed",
			"%s has no subscription to list %s to confirm. Add one with POST "+
				"/v1/subscribers/%[1]s/lists", idOf(ordinal),
			list.ListID)
	}
	if _, err := c.base(); err != nil {
		return api.ConfirmationSent{}, err
	}
	queueID, err := c.ask(ctx, account, ordinal, r, []*List{list}, 0)
	return api.ConfirmationSent{Sent: err == nil, QueueID: queueID}, err
}

// changed sends the emails for a change that was made. The change stands whether they can be sent or not: a
// failure is logged and counted, and [Confirmations.Again] sends the email.
func (c *Confirmations) changed(ctx context.Context, account string, ordinal uint32, r *record, d decision) {
	ctx = context.WithoutCancel(ctx)
	for lists := d.ask; len(lists) > 0; {
		n := min(len(lists), linkLists)
		_, err := c.ask(ctx, account, ordinal, r, lists[:n], askedWithin)
		if err != nil && !fault.Is(err, fault.Limited) {
			c.Subscribers.log.ErrorContext(ctx, "a mail that asks to confirm a subscription was not sent",
				"subscriber", idOf(ordinal), "account", account, "list", lists[0].ListID, "error", err)
		}
		lists = lists[n:]
	}
	c.welcome(ctx, account, ordinal, r, d.welcome)
}

// clipped cuts a text to a number of bytes, at the beginning of a character.
func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
