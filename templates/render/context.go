package render

// Person is somebody whom templates speak of.
type Person struct {
	Name    string
	Address string // of their mailbox
}

// Context is what a template is told besides the data of its caller.
type Context struct {
	Account    Person // who sends
	Recipient  Person // whom this mail is for
	ServiceURL string // where this Postroom is reached; empty: nowhere public

	UnsubscribeURL string // the recipient's own page; empty: there is none
	PreferencesURL string // likewise
}

// Data returns what a template sees: the caller's own as params (nil is an empty object), account {email, name}, service {url} and rcpt {name,
// address, unsubscribeUrl, preferencesUrl}, as EmailEngine calls most of them. What isn't known is "", so that only the caller's own can be missing. Params are not copied.
func (c Context) Data(params any) map[string]any {
	if params == nil {
		params = map[string]any{}
	}
	return map[string]any{
		"params":  params,
		"account": map[string]any{"email": c.Account.Address, "name": c.Account.Name},
		"service": map[string]any{"url": c.ServiceURL},
		"rcpt":    map[string]any{"name": c.Recipient.Name, "address": c.Recipient.Address, "unsubscribeUrl": c.UnsubscribeURL, "preferencesUrl": c.PreferencesURL},
	}
}
