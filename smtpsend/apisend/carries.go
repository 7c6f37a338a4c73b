package apisend

import (
	"fmt"

	"github.com/postroom/postroom/smtpsend"
)

// Carries reports whether a target can carry a message with this content. The error is nil if it can.
// Otherwise it is the one that Send would return without a request: smtpsend.Uncarried, whose text says why.
// Carries asks nobody. It looks at the envelope, RequireTLS and the content; m.Body isn't read.
func Carries(t Target, m smtpsend.Message, content []byte) error {
	a := adapters[t.Type]
	if a == nil {
		return smtpsend.Refused(fmt.Errorf("unknown type %q", t.Type))
	}
	if err := a.carries(t, &mail{Message: m, raw: content}); err != nil {
		return err
	}
	return nil
}

// carries returns why the API can't carry a message, and takes the message apart where the API wants parts.
func (a *adapter) carries(t Target, m *mail) *smtpsend.Error {
	if err := a.fits(t, int64(len(m.raw))); err != nil {
		return err
	}
	if m.RequireTLS && !a.tls {
		return uncarried(t, "it requires TLS on the whole way")
	}
	if a.apart {
		var err error
		if m.parts, err = takeApart(m.raw); err != nil {
			return uncarried(t, "it %w", err)
		}
		if err := a.fits(t, m.parts.size()); err != nil {
			return err
		}
	}
	if a.lacks != nil {
		if why := a.lacks(t, m); why != "" {
			return uncarried(t, "it has %s", why)
		}
	}
	return nil
}

// fits returns why a message is too large.
func (a *adapter) fits(t Target, size int64) *smtpsend.Error {
	if a.size == 0 || size <= a.size {
		return nil
	}
	return uncarried(t, "it has %d bytes, and %s takes %d", size, t.Type, a.size)
}

func uncarried(t Target, why string, args ...any) *smtpsend.Error {
	return smtpsend.Uncarried("gateway %s can't carry the message: "+why, append([]any{t.ID}, args...)...)
}
