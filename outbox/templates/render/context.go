package render

// Person is the sender or the recipient.
type Person struct {
	Name    string
	Address string // of their mailbox
}

// Context is the template data that Postroom adds to the caller's.
type Context struct {
	Account    Person // the sender
	Recipient  Person // the recipient of this mail
	ServiceURL string // public URL of this Postroom; empty: none

	UnsubscribeURL string // the recipient's own page; empty: none
	PreferencesURL string // likewise

	account, service map[string]any // as Data has them; nil: it makes them
}

// lifted are the params of digests and of mails to subscribers, which templates name without "params." too.
var lifted = [...]string{"campaign", "confirmUrl", "digest", "list", "subscriber"}

// Data returns the data of a template: the caller's as params (nil: an empty object), account {email, name},
// service {url} and rcpt {name, address, unsubscribeUrl, preferencesUrl}. Most names are EmailEngine's.
// Unknown values are "", so only the caller's variables can be missing. Params are not copied. Those that are
// lifted are beside params, too.
func (c Context) Data(params any) map[string]any {
	if params == nil {
		params = map[string]any{}
	}
	if c.account == nil {
		c = c.shared()
	}
	data := map[string]any{
		"params": params, "account": c.account, "service": c.service,
		"rcpt": map[string]any{"name": c.Recipient.Name, "address": c.Recipient.Address,
			"unsubscribeUrl": c.UnsubscribeURL, "preferencesUrl": c.PreferencesURL},
	}
	if own, ok := params.(map[string]any); ok {
		for _, name := range lifted {
			if value, ok := own[name]; ok {
				data[name] = value
			}
		}
	}
	return data
}

// shared is the context of many mails with the same sender.
func (c Context) shared() Context {
	c.account = map[string]any{"email": c.Account.Address, "name": c.Account.Name}
	c.service = map[string]any{"url": c.ServiceURL}
	return c
}
