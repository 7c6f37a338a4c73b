package ui

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
)

type endpointForm struct {
	formValues
	ID      string // empty: a new endpoint
	Trouble string // why it was refused; empty: it wasn't
	Groups  []eventGroup
}

// Twins returns the API request and the command that do the same.
func (v endpointForm) Twins() string {
	if v.ID == "" {
		return "POST /v1/webhook-endpoints · postroom webhook add"
	}
	return "PATCH /v1/webhook-endpoints/" + v.ID + " · postroom webhook update " + v.ID
}

// Wants reports whether the form selects an event type.
func (v endpointForm) Wants(t event.Type) bool { return v.Is("events", string(t)) }

func (u *UI) newEndpoint(w http.ResponseWriter, r *http.Request) error {
	f := url.Values{}
	preset(r.URL.Query(), f)
	return u.showEndpointForm(w, r, "", f, nil)
}

func (u *UI) showEndpointForm(w http.ResponseWriter, r *http.Request, id string, f url.Values,
	refused error) error {
	status, words, err := formTrouble(r, refused)
	if err != nil {
		return err
	}
	title := "New endpoint"
	if id != "" {
		title = "Change endpoint " + id
	}
	f.Del("secret") // the user enters it again
	return u.show(w, r, status, "endpointform", title, endpointForm{formValues: formValues{f}, ID: id,
		Trouble: words, Groups: eventGroups})
}

func (u *UI) editEndpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	e, err := u.Webhooks.Endpoint(r.Context(), id)
	if err != nil {
		return err
	}
	f := values(map[string]string{"url": e.URL, "description": e.Description,
		"accounts": strings.Join(e.Accounts, ", ")})
	if !slices.Equal(e.Events, []string{"*"}) {
		f["events"] = e.Events
	}
	preset(r.URL.Query(), f)
	if e.RateLimit > 0 {
		f.Set("rateLimit", strconv.Itoa(e.RateLimit))
	}
	var headers []string
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		headers = append(headers, name+": "+e.Headers[name])
	}
	f.Set("headers", strings.Join(headers, "\n"))
	return u.showEndpointForm(w, r, id, f, nil)
}

// readEndpoint returns the endpoint of a form. Its error has all fields that it can't read. Package webhooks
// checks the others.
func readEndpoint(f url.Values) (api.EndpointRequest, error) {
	var wrong fault.Fields
	e := api.EndpointRequest{URL: strings.TrimSpace(f.Get("url")), Events: f["events"],
		Accounts: strings.FieldsFunc(f.Get("accounts"), func(c rune) bool { return c == ',' || c == ' ' }),
		Headers:  map[string]string{}, Secret: strings.TrimSpace(f.Get("secret")),
		Description: strings.TrimSpace(f.Get("description"))}
	for line := range strings.Lines(f.Get("headers")) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok {
			wrong.Add("headers", "must have lines like X-Key: value")
		}
		e.Headers[name] = strings.TrimSpace(value)
	}
	if text := strings.TrimSpace(f.Get("rateLimit")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			wrong.Add("rateLimit", "must be 1 to 10000 requests a second")
		}
		e.RateLimit = n
	}
	return e, fault.InvalidFields(wrong)
}

// createEndpoint creates an endpoint. It answers with the page itself, because no other page shows the
// secret.
func (u *UI) createEndpoint(w http.ResponseWriter, r *http.Request) error {
	req, err := readEndpoint(r.PostForm)
	if err != nil {
		return u.showEndpointForm(w, r, "", r.PostForm, err)
	}
	made, err := u.Webhooks.Create(r.Context(), req)
	if err != nil {
		return u.showEndpointForm(w, r, "", r.PostForm, err)
	}
	noteMade(r, made)
	return u.showEndpoint(w, r, endpointView{ID: made.ID, Secret: made.Secret})
}

func (u *UI) changeEndpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	req, err := readEndpoint(r.PostForm)
	if err == nil {
		p := api.EndpointPatch{URL: &req.URL, Events: &req.Events, Accounts: &req.Accounts, Headers: &req.Headers,
			RateLimit: &req.RateLimit, Description: &req.Description}
		if req.Secret != "" {
			p.Secret = &req.Secret
		}
		_, err = u.Webhooks.Patch(r.Context(), id, p)
	}
	if err != nil {
		return u.showEndpointForm(w, r, id, r.PostForm, err)
	}
	return done(w, r, endpointPath(id), "Changed.")
}

func (u *UI) deleteEndpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	deleted, err := u.Webhooks.Delete(r.Context(), id)
	return removed(w, r, endpointPath(id), "/webhooks", deleted, err,
		"The endpoint was deleted. Its pending deliveries will be skipped.")
}

// switchEndpoint switches an endpoint on or off. The endpoint of the settings or of an account can only be
// switched on again.
func (u *UI) switchEndpoint(on bool) func(http.ResponseWriter, *http.Request, string, string) error {
	return func(w http.ResponseWriter, r *http.Request, id, _ string) error {
		_, err := u.Webhooks.Patch(r.Context(), id, api.EndpointPatch{Enabled: &on})
		if on && fault.Is(err, fault.NotFound) {
			if _, err = u.Webhooks.Off(r.Context(), id); err == nil { // there is one that is not stored
				err = u.Webhooks.Enable(r.Context(), id)
			}
		}
		switch {
		case err != nil:
			return undone(w, r, endpointPath(id), err)
		case !on:
			return done(w, r, endpointPath(id), "The endpoint is off. Its pending deliveries will be skipped.")
		}
		return done(w, r, endpointPath(id), "The endpoint is on. To send it the events that it missed, use a replay.")
	}
}

func (u *UI) wakeEndpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	got, err := u.Webhooks.Wake(r.Context(), id)
	return told(w, r, endpointPath(id), endpointPath(id), err, "Postroom tries the endpoint again. %s due now.",
		plural(got.Woken, "delivery is", "deliveries are"))
}

func (u *UI) rotateSecret(w http.ResponseWriter, r *http.Request, id, _ string) error {
	seconds, err := strconv.Atoi(r.PostForm.Get("overlap"))
	if err != nil {
		return undone(w, r, endpointPath(id), fault.InvalidField("overlap", "must be a number of seconds"))
	}
	got, err := u.Webhooks.Rotate(r.Context(), id, api.SecretRotation{Overlap: &seconds})
	if err != nil {
		return undone(w, r, endpointPath(id), err)
	}
	return u.showEndpoint(w, r, endpointView{ID: id, Secret: got.Secret})
}

func (u *UI) replayEndpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	since, err := readSince(r.PostForm.Get("since"))
	if err != nil || since.IsZero() {
		return undone(w, r, endpointPath(id), fault.InvalidField("since", "must be a date and time"))
	}
	err = u.Webhooks.StartReplay(r.Context(), id, since)
	return told(w, r, endpointPath(id), endpointPath(id), err, "The events since %s are being sent again.",
		since.UTC().Format("2006-01-02 15:04 UTC"))
}

type deliveryView struct {
	ID       string // of its endpoint
	Delivery api.Delivery
}

func (u *UI) delivery(w http.ResponseWriter, r *http.Request, id, delivery string) error {
	d, err := u.Webhooks.Delivery(r.Context(), id, delivery)
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "delivery", fmt.Sprintf("Delivery of %s", d.Event), deliveryView{id, d})
}
