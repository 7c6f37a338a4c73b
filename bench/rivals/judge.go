package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
)

// What the other may have changed.
const (
	twice     = "mails that were sent twice"
	early     = "mails that were sent too early, or though cancelled"
	waiting   = "waiting mails that the other changed"
	templates = "templates that the other changed"
	barred    = "suppressions that the other changed"
	endpoints = "endpoints that the other changed"
	programs  = "lists, campaigns and categories that the other changed"
)

// keeps compares what the account has with what it should have.
func (r *rival) keeps(ctx context.Context) ([]crossing, error) {
	found := newTally(twice, early, waiting, templates, barred, endpoints, programs)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.mails {
		r.keepsMail(ctx, m, found)
	}
	for id, text := range r.templates {
		var got struct{ Content struct{ Text string } }
		if _, err := r.call(ctx, http.MethodGet, "/v1/templates/template/"+id, "", &got); err != nil ||
			got.Content.Text != text {
			found.add(templates, fmt.Sprint(id, " ", got, " ", err))
		}
	}
	for n := range shared {
		who := sharedAddress(n)
		var got struct{ Suppressions []api.Suppression }
		if _, err := r.call(ctx, http.MethodGet, "/v1/suppressions/check?email="+url.QueryEscape(who), "",
			&got); err != nil {
			return nil, err
		}
		if (len(got.Suppressions) > 0) != r.barred[who] {
			found.add(barred, fmt.Sprintf("%s: %+v", who, got.Suppressions))
		}
	}
	for _, path := range []string{"/v1/lists/" + r.list(), "/v1/campaigns/" + r.campaign(),
		"/v1/digests/kinds/" + r.category()} {
		var got struct {
			Name, State string
			Title       map[string]string
			Version     int
			Counts      struct{ Subscribed int }
		}
		if _, err := r.call(ctx, http.MethodGet, path, "", &got); err != nil ||
			got.Name+got.Title["en"] != r.secret ||
			got.Version != 1 || got.Counts.Subscribed != 0 || got.State != "" && got.State != "draft" {
			found.add(programs, fmt.Sprint(path, " ", got, " ", err))
		}
	}
	e, err := api.GetEndpoint.Do(ctx, r.admin, r.endpoint)
	if err != nil || !strings.HasPrefix(e.URL, r.receiver.URL) || !e.Enabled {
		found.add(endpoints, fmt.Sprintf("%+v, %v", e, err))
	}
	return found.list(), nil
}

// keepsMail checks an email's result.
func (r *rival) keepsMail(ctx context.Context, m *mail, found *tally) {
	if m.arrived > 1 {
		found.add(twice, m.id)
	}
	if !m.later {
		return
	}
	if m.arrived > 0 {
		found.add(early, m.id)
	}
	var got struct{ State string }
	_, err := r.call(ctx, http.MethodGet, "/v1/outbox/"+m.id, "", &got)
	if !m.cancelled && (err != nil || got.State != "scheduled") {
		found.add(waiting, fmt.Sprint(m.id, " ", got, " ", err))
	}
}
