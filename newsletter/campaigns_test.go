package newsletter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

// TestAPatchRemoves: what is empty is removed, what is absent stays.
func TestAPatchRemoves(t *testing.T) {
	t.Parallel()
	end := time.Date(2030, 12, 24, 8, 30, 0, 0, time.UTC)
	whole := func() api.Campaign {
		return api.Campaign{Name: "N", Lists: []string{"news"}, Rate: 2, EndAt: &end, Events: "ends",
			KeepLog: true, Archive: true,
			Window: &api.CampaignWindow{From: "08:00", Until: "20:00"},
			CampaignContent: api.CampaignContent{From: &api.Address{Address: "a@example.com"},
				ReplyTo: api.Addresses{{Address: "b@example.com"}}, HTML: "h", Tags: []string{"a"},
				Render: &api.Render{Format: "markdown"}, Metadata: json.RawMessage(`{"a":1}`),
				Fallbacks: json.RawMessage(`{"b":2}`), TrackOpens: new(true), TrackClicks: new(false)}}
	}
	c := whole()
	patched(&c, api.CampaignPatch{})
	if diff := cmp.Diff(whole(), c); diff != "" {
		t.Errorf("nothing was to change (-want +got):\n%s", diff)
	}
	patched(&c, api.CampaignPatch{From: &api.Address{}, ReplyTo: &api.Addresses{}, HTML: new(""),
		Render: &api.Render{Params: json.RawMessage(" {} ")}, Tags: &[]string{}, Metadata: json.RawMessage("{}"),
		Fallbacks: json.RawMessage("{ }"), TrackOpens: new(*bool), TrackClicks: new(*bool), Lists: &[]string{},
		Rate: new(0.0), Window: &api.CampaignWindow{}, EndAt: &time.Time{}, KeepLog: new(false),
		Archive: new(false)})
	want := api.Campaign{Name: "N", Events: "ends", Lists: []string{}, CampaignContent: api.CampaignContent{
		ReplyTo: api.Addresses{}, Tags: []string{}}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("all was to be removed (-want +got):\n%s", diff)
	}
}

func TestIDsAreMadeOfNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"Spring sale!": "spring-sale", "  Ünter--100 % ": "nter-100",
		strings.Repeat("a", 62) + " b": strings.Repeat("a", 62)} {
		if got := idOf(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"New", "春", "!"} {
		if got := idOf(name); !strings.HasPrefix(got, "campaign-") || !ids.MatchString(got) {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// TestMailIsFilledAsFromJSON: the outbox stores these params when an email is deferred, and reads them again.
func TestMailIsFilledAsFromJSON(t *testing.T) {
	t.Parallel()
	m := newMail(api.Campaign{Campaign: "c", Name: "C",
		CampaignContent: api.CampaignContent{Tags: []string{"news"},
			Render:    &api.Render{Params: json.RawMessage(`{"price":1.50,"lines":[{"n":1}]}`)},
			Fallbacks: json.RawMessage(`{"city":"town","plan":null}`)}})
	got, err := m.filled(audience.Person{ID: "s1", Email: "a@example.com", Name: "Ann", Tags: []string{"vip"},
		Attributes: json.RawMessage(`{"customer":12345678901234567890,"plan":"pro"}`)})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again map[string]any
	if err := decode(stored, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(again, got); diff != "" {
		t.Errorf("(-read again +filled)\n%s", diff)
	}
	if !strings.Contains(string(stored), `"customer":12345678901234567890`) {
		t.Errorf("digits are lost: %s", stored)
	}
}
