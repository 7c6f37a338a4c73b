package audience

import (
	"context"
	"html/template"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// embedded is a form for pages of other sites. It has no script and no style.
var embedded = template.Must(template.New("").Parse(`<form method="post" action="{{.Action}}" accept-charset="utf-8">
<input type="hidden" name="listId" value="{{.ListID}}">
<p><label>Email <input type="email" name="email" required maxlength="254" autocomplete="email"></label></p>
<p><label>Name <input type="text" name="name" maxlength="256" autocomplete="name"></label></p>
<div hidden aria-hidden="true"><label>Website <input type="text" name="website" tabindex="-1" autocomplete="off"></label></div>
<p><button type="submit">Subscribe</button></p>
</form>
`))

// Form returns the public form of a list, to link or to embed. Conflict, code ListNotPublic: it has none.
// Unprocessable, code NoPublicUrl: nobody could reach it.
func (c *Confirmations) Form(ctx context.Context, bound, id string) (api.ListForm, error) {
	list, err := c.Subscribers.Lists.Get(ctx, bound, id)
	if err != nil {
		return api.ListForm{}, err
	}
	base := strings.TrimRight(c.ServiceURL(), "/")
	switch {
	case !list.Public:
		return api.ListForm{}, fault.New(fault.Conflict, "ListNotPublic",
			"List %q has no form, because it is not public: set public", list.ListID)
	case base == "":
		return api.ListForm{}, fault.New(fault.Unprocessable, "NoPublicUrl",
			"A form needs the public address of Postroom: set serviceUrl")
	}
	var html strings.Builder
	err = embedded.Execute(&html, struct{ Action, ListID string }{base + "/subscribers", list.ListID})
	return api.ListForm{URL: base + "/subscribers?listId=" + url.QueryEscape(list.ListID), HTML: html.String()},
		err
}
