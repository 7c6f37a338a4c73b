package ui

import (
	"net/http"
	"net/url"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend/apiadmin"
)

// showImport adds the import of the provider's suppression list to the page of a gateway.
func (u *UI) showImport(r *http.Request, view *gatewayView) error {
	if view.Lists = apiadmin.HasSuppressions(view.Type); !view.Lists {
		return nil
	}
	got, err := u.Provider.Progress(r.Context(), view.Gateway.Gateway)
	switch {
	case err == nil:
		view.Import = &got
	case !fault.Is(err, fault.NotFound):
		return err
	}
	return nil
}

// importProviderList starts an import of the provider's suppression list.
func (u *UI) importProviderList(w http.ResponseWriter, r *http.Request, info api.GatewayInfo) error {
	id := info.Gateway.Gateway
	_, err := u.Provider.Start(r.Context(), id, api.ProviderImportStart{Account: r.PostForm.Get("account")})
	if err != nil {
		return undone(w, r, "/gateways/"+url.PathEscape(id), err)
	}
	return done(w, r, "/gateways/"+url.PathEscape(id),
		"The import has started. Reload the page to see its progress.")
}
