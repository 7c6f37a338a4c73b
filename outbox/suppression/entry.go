package suppression

import (
	"errors"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// Reason is the reason of a suppression.
type Reason string

// The reasons, the weakest first: [Store.Check] returns the last one that holds.
const (
	Unsubscribe Reason = "unsubscribe" // the recipient unsubscribed. Stops bulk mail, and mail of lists
	HardBounce  Reason = "hard_bounce" // the address does not exist, or refused too often. Stops all mail
	SpamReport  Reason = "spam_report" // the recipient called a message spam. Stops all mail
	Manual      Reason = "manual"      // an operator or program added it. Stops all mail
)

// Reasons are all reasons, the weakest first.
var Reasons = [...]Reason{Unsubscribe, HardBounce, SpamReport, Manual}

// letters are the codes of Reasons in Redis.
const letters = "uhsm"

// strength returns the position of a reason in Reasons, or -1 for an unknown one.
func (r Reason) strength() int {
	for i, known := range Reasons {
		if r == known {
			return i
		}
	}
	return -1
}

// Valid reports whether r is one of Reasons.
func (r Reason) Valid() bool { return r.strength() >= 0 }

func (r Reason) letter() string { return letters[r.strength():][:1] }

func reasonOf(letter byte) Reason {
	if i := strings.IndexByte(letters, letter); i >= 0 {
		return Reasons[i]
	}
	return ""
}

// Entry is one reason not to mail an address, or a domain, in one scope.
type Entry struct {
	Address string // the address, in any form, or Domain
	Domain  string // all addresses of this domain, or Address
	Reason  Reason // required

	Account string // only mail of this account; if empty, of the whole instance
	List    string // only mail of this list of the account, which is required then; empty for any or no list

	Created time.Time // zero means now. In whole seconds
	Expires time.Time // time from which it no longer holds; zero means never. In whole seconds, rounded up
	// origin: api, csv, page, smtp, bounce, unsubscribe, ses, …; letters, digits, - _ . and :, cut to 40. Values
	// of more than 64 bytes cost memory: see the package
	Source    string
	MessageID string // evidence: queueId of the message that caused it; empty if none
	Response  string // evidence: the reply, or a comment of the operator, cut to 500 bytes; empty if none

	// Origin of the request. Kept as long as the entry, and shown to everyone who may see its address.
	RemoteAddress string // the request's IP address, in the kept form; empty if not known
	UserAgent     string // the request's, cut to 256 bytes; empty if not known
}

// Bounds of the fields of an entry, in bytes.
const (
	maxSource    = 40
	maxMessageID = 200
	maxResponse  = 500
	maxScope     = 256
	maxUserAgent = 256
	maxRemote    = 64
)

// Normal returns the entry as it is stored, or its invalid fields. path is the prefix of their names, such as
// "suppressions[3].".
func (e Entry) Normal(path string, now time.Time) (Entry, []fault.Field) {
	var wrong fault.Fields
	fail := func(key, text string) { wrong.Add(path+key, "%s", text) }
	switch {
	case e.Address == "" && e.Domain == "":
		fail("address", "is required, or domain")
	case e.Address != "" && e.Domain != "":
		fail("domain", "can't be given together with an address")
	case e.Address != "":
		address, err := normalAddress(e.Address)
		if err != nil {
			fail("address", err.Error())
		}
		e.Address = address
	default:
		domain, err := normalDomain(e.Domain)
		if err != nil {
			fail("domain", err.Error())
		}
		e.Domain = domain
	}
	if !e.Reason.Valid() {
		fail("reason", "must be one of unsubscribe, hard_bounce, spam_report, manual")
	}
	if e.Account == "" && e.List != "" {
		fail("account", "is required with a list, for each account has its own lists")
	}
	if !validAccount(e.Account) {
		fail("account", "isn't an account ID")
	}
	e.List = strings.ToLower(e.List)
	if !validList(e.List) {
		fail("list", "is not the id of a list: letters, digits, -, _ and dots")
	}
	return e.bounded(now), wrong
}

// bounded cuts the free texts to their bounds, and rounds the times.
func (e Entry) bounded(now time.Time) Entry {
	if e.Created.IsZero() || e.Created.After(now) {
		e.Created = now
	}
	e.Created = e.Created.UTC().Truncate(time.Second)
	if !e.Expires.IsZero() {
		e.Expires = e.Expires.UTC().Add(time.Second - 1).Truncate(time.Second)
	}
	e.Source = message.Clip(strings.Map(sourceRune, e.Source), maxSource)
	e.MessageID = message.Clip(oneLine(e.MessageID), maxMessageID)
	e.Response = message.Clip(oneLine(e.Response), maxResponse)
	e.RemoteAddress = message.Clip(oneLine(e.RemoteAddress), maxRemote)
	e.UserAgent = message.Clip(oneLine(e.UserAgent), maxUserAgent)
	return e
}

// normalAddress returns an address as it is compared: local parts that differ only in case are the same
// recipient.
func normalAddress(address string) (string, error) {
	normal, err := message.NormalizeAddress(strings.TrimSpace(address))
	if err != nil {
		return "", err
	}
	return strings.ToLower(normal), nil
}

var errBadDomain = errors.New("is not a valid domain")

// normalDomain accepts "example.com" and "@example.com".
func normalDomain(domain string) (string, error) {
	normal, err := message.NormalizeAddress("x@" + strings.TrimPrefix(strings.TrimSpace(domain), "@"))
	if err != nil {
		return "", errBadDomain
	}
	return normal[2:], nil
}

// foldAddress is normalAddress for a message's addresses, which are valid. It returns an invalid one
// unchanged.
func foldAddress(address string) string {
	normal, err := normalAddress(address)
	if err != nil {
		return strings.ToLower(address)
	}
	return normal
}

// validAccount reports whether id may be an account's id. It does not check that the account exists: it may
// come back.
func validAccount(id string) bool {
	return len(id) <= maxScope && strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
}

func validList(id string) bool {
	return len(id) <= maxScope && strings.IndexFunc(id, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) < 0
}

func sourceRune(r rune) rune {
	switch {
	case r == '-', r == '_', r == '.', r == ':', r >= '0' && r <= '9', r >= 'a' && r <= 'z':
		return r
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	}
	return -1
}

// oneLine replaces characters that would end a line, in a file and on a page.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s))
}
