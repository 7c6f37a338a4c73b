package accounts

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// maxSenders bounds the senders on the record of an account.
const maxSenders = 100

// lookUpTimeout is the timeout of the DNS, while a client waits.
const lookUpTimeout = 10 * time.Second

// normalSender returns an address or a domain in normal form.
func normalSender(sender string) (string, error) {
	if strings.Contains(sender, "@") {
		normal, err := message.NormalizeAddress(sender)
		return strings.ToLower(normal), err
	}
	return dkim.CheckDomain(sender)
}

// senders checks the senders of an account.
func (f *faults) senders(list []api.SenderRight) {
	if len(list) > maxSenders {
		f.Add("senders", "must not be more than %d", maxSenders)
	}
	for i, s := range list {
		if _, err := normalSender(s.Sender); err != nil {
			f.Add(fmt.Sprintf("senders[%d].sender", i), "%v", err)
		}
		if !slices.Contains([]string{"", api.SenderSet, api.SenderVerified, api.SenderPending}, s.Status) {
			f.Add(fmt.Sprintf("senders[%d].status", i), "must be set, verified or pending")
		}
		if !slices.Contains([]string{"", api.SenderByDNS, api.SenderByMail}, s.By) {
			f.Add(fmt.Sprintf("senders[%d].by", i), "must be dns or mail")
		}
	}
}

// normalSenders returns checked senders in normal form, each once, with their status and its time.
func (a *Accounts) normalSenders(list []api.SenderRight) []api.SenderRight {
	var out []api.SenderRight
	for _, s := range list {
		s.Sender, _ = normalSender(s.Sender) // it was checked
		s.Status = cmp.Or(s.Status, api.SenderSet)
		if s.Since == nil {
			s.Since = new(a.now().UTC().Truncate(time.Millisecond))
		}
		if i := indexSender(out, s.Sender); i >= 0 {
			out[i] = s
			continue
		}
		out = append(out, s)
	}
	return out
}

func indexSender(list []api.SenderRight, sender string) int {
	return slices.IndexFunc(list, func(s api.SenderRight) bool { return s.Sender == sender })
}

// Senders returns what an account may send as: its own address and domain, and the senders on its record.
// Pending entries have the DNS record that verifies them. It returns NotFound for an unknown account.
func (a *Accounts) Senders(ctx context.Context, id string) (api.Senders, error) {
	s, err := a.store.Get(ctx, id)
	if err != nil {
		return api.Senders{}, err
	}
	answer := api.Senders{Account: id}
	var own Sender
	own.permit(api.Account{Email: s.Value.Email}, a.addressOnly)
	for _, sender := range slices.Concat(own.Addresses, own.Domains) {
		answer.Senders = append(answer.Senders, api.SenderInfo{Sender: sender, Status: api.SenderOwn})
	}
	for _, right := range s.Value.Senders {
		answer.Senders = append(answer.Senders, a.senderInfo(id, right))
	}
	return answer, nil
}

// InfoOf returns a sender on record as in answers, without the DNS record that verifies a pending one.
func InfoOf(right api.SenderRight) api.SenderInfo {
	return api.SenderInfo{Sender: right.Sender, Status: right.Status, Since: right.Since, By: right.By}
}

// senderInfo is InfoOf with the DNS record.
func (a *Accounts) senderInfo(id string, right api.SenderRight) api.SenderInfo {
	info := InfoOf(right)
	if right.Status == api.SenderPending && !strings.Contains(right.Sender, "@") {
		info.DNS = &api.SenderDNS{Name: challengeName(right.Sender), Value: a.challenge(id, right.Sender)}
	}
	return info
}

// AddSender adds an address or a domain to the senders of an account. set: it counts at once; else it is a
// domain, and pending until [Accounts.VerifySender]. One that is on record stays as it is, or becomes set.
func (a *Accounts) AddSender(ctx context.Context, id, sender string, set bool) (api.SenderInfo, error) {
	sender, err := normalSender(sender)
	switch {
	case err != nil:
		return api.SenderInfo{}, fault.InvalidField("sender", "%s", err)
	case !set && strings.Contains(sender, "@"):
		return api.SenderInfo{}, fault.New(fault.Forbidden, "SenderNotAllowed",
			"Only a token that isn't bound to an account can add a single address. Verify it with POST "+
				"/v1/account/%s/senders/{sender}/mail, or verify the domain", id)
	}
	var right api.SenderRight
	err = a.editSenders(ctx, id, func(old *stored) (api.Account, error) {
		account := old.Value
		account.Senders = slices.Clone(account.Senders)
		right = api.SenderRight{Sender: sender, Status: api.SenderPending}
		if i := indexSender(account.Senders, sender); i >= 0 {
			right = account.Senders[i]
		}
		if set {
			right.Status, right.Since, right.By = api.SenderSet, nil, ""
		}
		account.Senders = append(account.Senders, right)
		account, err := a.checked(ctx, account, old)
		if err == nil {
			right = account.Senders[indexSender(account.Senders, sender)]
		}
		return account, err
	})
	return a.senderInfo(id, right), err
}

// VerifySender looks for the DNS record of a pending domain, and makes it a sender of the account. Conflict,
// code SenderNotVerified, with the record to publish: it is not there.
func (a *Accounts) VerifySender(ctx context.Context, id, sender string) (api.SenderInfo, error) {
	s, err := a.store.Get(ctx, id)
	if err != nil {
		return api.SenderInfo{}, err
	}
	sender, i := findSender(s.Value.Senders, sender)
	switch {
	case i < 0:
		return api.SenderInfo{}, senderNotFound()
	case s.Value.Senders[i].Status != api.SenderPending:
		return a.senderInfo(id, s.Value.Senders[i]), nil
	case strings.Contains(sender, "@"):
		return api.SenderInfo{}, fault.New(fault.Conflict, "SenderNotVerified",
			"DNS verifies only domains. To verify this address, follow the link in the email that was "+
				"sent to it")
	}
	if err := a.published(ctx, id, sender); err != nil {
		return api.SenderInfo{}, err
	}
	right, _, err := a.verified(ctx, id, sender, api.SenderByDNS, nil)
	return a.senderInfo(id, right), err
}

// RemoveSender removes a sender from an account's record, or returns NotFound. Messages from that sender that
// a bound token submitted fail at their next attempt.
func (a *Accounts) RemoveSender(ctx context.Context, id, sender string) error {
	return a.editSenders(ctx, id, func(old *stored) (api.Account, error) {
		account := old.Value
		_, i := findSender(account.Senders, sender)
		if i < 0 {
			return account, senderNotFound()
		}
		account.Senders = slices.Delete(slices.Clone(account.Senders), i, i+1)
		return account, nil
	})
}

// editSenders changes the senders of a stored account. One from the configuration is not stored for that: it
// would no longer follow its settings.
func (a *Accounts) editSenders(ctx context.Context, id string,
	edit func(old *stored) (api.Account, error)) error {
	return a.store.Update(ctx, id, func(old *stored) (api.Account, error) {
		if !old.Stored() {
			return old.Value, fault.New(fault.Conflict, "AccountConfigured",
				"Account %q comes from the configuration (setting smtp). Store it with PUT /v1/account/%s "+
					"and "+
					"its senders, or use another account", id, id)
		}
		return edit(old)
	})
}

// findSender returns a sender in normal form and its place on a record; -1: it is not there.
func findSender(list []api.SenderRight, sender string) (normal string, place int) {
	normal, err := normalSender(sender)
	if err != nil {
		return "", -1
	}
	return normal, indexSender(list, normal)
}

func senderNotFound() error {
	return fault.New(fault.NotFound, "SenderNotFound",
		"The account has no such sender. Add it with POST /v1/account/{account}/senders")
}

// challengeName returns the name of the DNS record that verifies a domain.
func challengeName(domain string) string { return "_postroom." + domain }

// challenge returns the value of the DNS record that lets an account send as a domain. It is different for
// each account, so that no account can use another's record.
func (a *Accounts) challenge(id, domain string) string {
	sum := hmac.New(sha256.New, a.proofs)
	sum.Write([]byte(id + "\x00" + domain))
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:20])
	return "postroom-sender=" + strings.ToLower(text)
}

// published returns nil if the DNS record that verifies a domain is there.
func (a *Accounts) published(ctx context.Context, id, domain string) error {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	name, want := challengeName(domain), a.challenge(id, domain)
	found, err := a.lookUpTXT(ctx, name)
	for _, text := range found {
		if hmac.Equal([]byte(strings.TrimSpace(text)), []byte(want)) {
			return nil
		}
	}
	f := fault.New(fault.Conflict, "SenderNotVerified",
		"DNS has no TXT record %s with the value %s (%d others). Publish it, wait until DNS has it, and "+
			"try again",
		name, want, len(found))
	if err != nil {
		f.Err = fmt.Errorf("look up TXT of %s: %w", name, err)
	}
	return f
}
