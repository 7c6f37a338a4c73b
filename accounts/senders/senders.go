package senders

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/signedtoken"
)

// The limits on emails.
const (
	PerAddress = 3  // a day, whoever asks
	PerAccount = 20 // a day

	// Lifetime is how long a link works.
	Lifetime = 24 * time.Hour

	again = 10 * time.Minute // a request that is repeated within this time is the same one
)

// Parts are what proving needs. All are required.
type Parts struct {
	DB       *redisdb.DB
	Tokens   *signedtoken.Ring // seals and reads the links
	Accounts *accounts.Accounts
	// Submit submits a message; outbox.Intake implements it
	Submit func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error)
	// URL returns the public address of the instance, or ""
	URL func() string
}

// Options are the settings. The zero value sends no mail.
type Options struct {
	Account  string                // sends the emails; empty if none are sent
	Logger   *slog.Logger          // nil if nothing is logged
	Registry prometheus.Registerer // nil if nothing is counted
	Now      func() time.Time      // defaults to time.Now
}

// Proofs sends the emails and reads their links. It is safe for concurrent use.
type Proofs struct {
	Parts
	account string
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
}

// New makes Proofs. It does no I/O.
func New(parts Parts, o Options) (*Proofs, error) {
	if parts.DB == nil || parts.Tokens == nil || parts.Accounts == nil || parts.Submit == nil ||
		parts.URL == nil {
		return nil, errors.New("new senders: a part is missing")
	}
	p := &Proofs{Parts: parts, account: o.Account, now: o.Now, metrics: newMetrics(o.Registry),
		log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
	if p.now == nil {
		p.now = time.Now
	}
	return p, nil
}

// Ask sends an email to an address, with the link that makes it an account's sender. Until then it is
// pending. An address that the account may use gets no email. It returns Limited after too many emails, and
// Conflict if no emails are sent, if the account is the one that sends them, or if the address is suppressed.
func (p *Proofs) Ask(ctx context.Context, account, address string) (api.SenderInfo, error) {
	info, result, err := p.ask(ctx, account, address)
	if fault.Is(err, fault.Limited) {
		result = "limited"
	} else if err != nil {
		result = "refused"
	}
	if result != "" {
		p.metrics.mails.WithLabelValues(result).Inc()
	}
	return info, err
}

// ask is Ask. Its result is the metric's, or empty.
func (p *Proofs) ask(ctx context.Context, account, address string) (api.SenderInfo, string, error) {
	address, err := message.NormalizeAddress(address)
	if err != nil {
		return api.SenderInfo{}, "", fault.InvalidField("sender",
			"%s; an email verifies an address, DNS a domain", err)
	}
	address = strings.ToLower(address) // as on the record
	found, err := p.Accounts.Get(ctx, account)
	if err != nil {
		return api.SenderInfo{}, "", err
	}
	for _, right := range found.Senders {
		if right.Sender == address && right.Status != api.SenderPending {
			return accounts.InfoOf(right), "", nil
		}
	}
	base := p.URL()
	if err := p.able(account, base); err != nil {
		return api.SenderInfo{}, "", err
	}
	asked, fresh, err := p.count(ctx, account, address)
	if err != nil {
		return api.SenderInfo{}, "", err
	}
	info, err := p.Accounts.PendSender(ctx, account, address, asked)
	if err != nil {
		return info, "", err
	}
	req, err := p.mail(found.Account, base, address, asked)
	if err != nil {
		return info, "", err
	}
	answer, err := p.Submit(ctx, req)
	switch {
	case err != nil:
		return info, "", err
	case answer.Skipped != nil:
		return info, "", fault.New(fault.Conflict, "AddressSuppressed",
			"This address is suppressed for account %q, which sends the verification emails", p.account)
	}
	info.Mail = &api.SenderMail{Asked: asked, Expires: asked.Add(Lifetime)}
	p.log.InfoContext(ctx, "sender asked by mail", "account", account, "message_id", answer.QueueID)
	if !fresh {
		return info, "repeated", nil
	}
	return info, "sent", nil
}

// able returns Conflict if no mail can be sent for an account.
func (p *Proofs) able(account, base string) error {
	switch {
	case p.account == "":
		return fault.New(fault.Conflict, "SenderMailOff",
			"Addresses aren't verified by email here. Set senders.mailAccount to an account whose tokens "+
				"customers don't have, or verify the domain")
	case p.account == account:
		return fault.New(fault.Conflict, "SenderMailOwn",
			"Account %q sends the verification emails and could read its own link. Set the sender with a token that isn't bound "+
				"to an account", account)
	case base == "":
		return fault.New(fault.Conflict, "NoPublicAddress",
			"The link requires this Postroom's public URL. Set serviceUrl")
	}
	return nil
}

// count counts an email, and returns when it was asked for. fresh: it was not asked for lately.
func (p *Proofs) count(ctx context.Context, account, address string) (asked time.Time, fresh bool,
	err error) {
	now := p.now()
	got, err := askScript.Run(ctx, p.DB.Client(), []string{addressKey(address), accountKey(account)}, askArgs{
		Mail: account + " " + hashOf(address), Now: now, Day: (24 * time.Hour).Milliseconds(),
		Again: again.Milliseconds(), PerAddress: PerAddress, PerAccount: PerAccount,
	})
	if err != nil {
		return asked, false, redisdb.Failed(err, "senders: count a mail of account %s", account)
	}
	var f *fault.Error
	switch got.Word {
	case "ADDRESS":
		f = fault.New(fault.Limited, "TooManySenderMails",
			"This address got %d verification emails in a day. Follow the link in one of them, or try again later",
			PerAddress)
	case "ACCOUNT":
		f = fault.New(fault.Limited, "TooManySenderMails",
			"Account %q sent %d verification emails in a day. Try again later, or verify the domain", account,
			PerAccount)
	default:
		return got.Asked.UTC(), got.Word == "SEND", nil
	}
	f.RetryAfter = max(got.Free.Sub(now), time.Second)
	return asked, false, f
}
