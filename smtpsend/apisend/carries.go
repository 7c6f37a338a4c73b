package apisend

import (
	"fmt"
	"strings"

	"github.com/postroom/postroom/smtpsend"
)

// Lack is why a gateway can't carry a message.
type Lack struct {
	Gateway string // id
	Field   string // the field of a submit that the reason is about, such as attachments; empty for the content
	Why     string // what follows the word "it"
}

// Error returns the reason for whoever reads about the message.
func (l *Lack) Error() string {
	return fmt.Sprintf("gateway %s can't carry the message: it %s", l.Gateway, l.Why)
}

// Carries returns nil if a target can carry a message with this content, and otherwise the reason that Send
// would give without a request. It makes no request. It looks at the envelope, RequireTLS and the content;
// m.Body isn't read. The target's type must be Known.
func Carries(t Target, m smtpsend.Message, content []byte) *Lack {
	return adapters[t.Type].carries(t, &mail{Message: m, raw: content})
}

// carries returns why the API can't carry a message, and takes the message apart where the API wants parts.
func (a *adapter) carries(t Target, m *mail) *Lack {
	if lack := a.fits(t, int64(len(m.raw))); lack != nil {
		return lack
	}
	if m.RequireTLS && !a.tls {
		return &Lack{t.ID, "requireTls", "requires TLS on the whole way"}
	}
	if a.apart {
		var err error
		if m.parts, err = takeApart(m.raw); err != nil {
			return &Lack{Gateway: t.ID, Why: err.Error()}
		}
		if lack := a.fits(t, m.parts.size()); lack != nil {
			return lack
		}
	}
	if a.lacks == nil {
		return nil
	}
	why := a.lacks(t, m)
	field, what, named := strings.Cut(why, ": ")
	switch {
	case why == "":
		return nil
	case !named:
		field, what = "", why
	}
	return &Lack{t.ID, field, "has " + what}
}

// fits returns why a message is too large.
func (a *adapter) fits(t Target, size int64) *Lack {
	if a.size == 0 || size <= a.size {
		return nil
	}
	return &Lack{Gateway: t.ID, Why: fmt.Sprintf("has %d bytes, and %s takes %d", size, t.Type, a.size)}
}

// uncarried returns the error of Send. It is nil if there is no lack.
func (l *Lack) uncarried() *smtpsend.Error {
	if l == nil {
		return nil
	}
	e := smtpsend.Uncarried("%w", l)
	e.Protocol = protocol
	return e
}
