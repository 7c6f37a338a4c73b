package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

func TestStartOf(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"10m":                  "2030-12-24T12:10:00Z",
		"in 1h":                "2030-12-24T13:00:00Z",
		"2030-12-25T08:00":     "2030-12-25T08:00", // in the zone of the campaign, which the server knows
		"2030-12-25T08:00:00Z": "2030-12-25T08:00:00Z",
		"tomorrow":             "tomorrow", // the server refuses it
	} {
		if got := startOf(text, noon); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestCampaignPatch: what is not named must not be written, and what is named must be as it was said.
func TestCampaignPatch(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	page, words := file("page.html", "<p>Hi</p>"), file("mail.md", "# Hi")
	con := &console{in: strings.NewReader("from a pipe")}
	params := &api.Render{Format: "markdown", Params: []byte(`{"a":1}`)}
	for _, tc := range []struct {
		name  string
		flags campaignFields
		was   *api.Render
		want  api.CampaignPatch
	}{
		{"nothing", campaignFields{}, params, api.CampaignPatch{}},
		{"html", campaignFields{HTML: page}, nil, api.CampaignPatch{HTML: new("<p>Hi</p>"),
			Render: &api.Render{Format: "html"}}},
		{"html in place of Markdown", campaignFields{HTML: "@" + page}, params, api.CampaignPatch{
			HTML: new("<p>Hi</p>"), Render: &api.Render{Format: "html", Params: []byte(`{"a":1}`)}}},
		{"Markdown", campaignFields{Markdown: words, Text: "-"}, nil, api.CampaignPatch{HTML: new("# Hi"),
			Text: new("from a pipe"), Render: &api.Render{Format: "markdown"}}},
		{"params", campaignFields{Params: `{"b":2}`}, params, api.CampaignPatch{
			Render: &api.Render{Format: "markdown", Params: []byte(`{"b":2}`)}}},
		{"missing variables", campaignFields{Missing: "error"}, params, api.CampaignPatch{
			Render: &api.Render{Format: "markdown", Params: []byte(`{"a":1}`), Missing: "error"}}},
		{"lists", campaignFields{List: []string{"a", "b"}, Segment: []string{""}}, nil, api.CampaignPatch{
			Lists: &[]string{"a", "b"}, Segments: &[]string{}}},
		{"a window", campaignFields{WindowDays: []string{"mon"}, WindowFrom: "08:00", WindowUntil: "20:00"}, nil,
			api.CampaignPatch{Window: &api.CampaignWindow{Days: []string{"mon"}, From: "08:00", Until: "20:00"}}},
		{"an address", campaignFields{From: "News <news@example.com>", ReplyTo: []string{"a@example.com",
			"b@example.com, c@example.com"}}, nil, api.CampaignPatch{
			From: &api.Address{Name: "News", Address: "news@example.com"},
			ReplyTo: &api.Addresses{{Address: "a@example.com"}, {Address: "b@example.com"},
				{Address: "c@example.com"}}}},
		{"an end", campaignFields{EndAt: "2030-12-24T12:00:00Z"}, nil, api.CampaignPatch{EndAt: &noon}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.flags.patch(con, tc.was)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if string(params.Params) != `{"a":1}` || params.Format != "markdown" {
		t.Error("what was read was changed in place")
	}
}

func TestCampaignFlagsAreRefused(t *testing.T) {
	for want, flags := range map[string]campaignFields{
		"--html or --markdown": {HTML: "a", Markdown: "b"},
		"--text: ":             {Text: "there-is-no-such-file"},
		"--from: ":             {From: "a@example.com, b@example.com"},
		"--metadata is not":    {Metadata: "x"},
		"--end-at: ":           {EndAt: "soon"},
	} {
		if _, err := flags.patch(&console{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestCampaignInWords(t *testing.T) {
	later := noon.Add(time.Hour)
	n := api.CampaignStates{Waiting: 5, Sending: 2, Sent: 90, Bounced: 3}
	if got := numbersLine(n); got != "5 waiting, 2 sending, 90 sent, 3 bounced" {
		t.Error(got)
	}
	if got := campaignDone(n); got != "93 of 100" {
		t.Error(got)
	}
	if got := numbersLine(api.CampaignStates{}) + campaignDone(api.CampaignStates{}); got != "no recipients-" {
		t.Error(got)
	}
	if got := windowWords(&api.CampaignWindow{Days: []string{"mon", "tue"}, From: "08:00", Until: "20:00",
		Of: "recipient"}); got != "mon tue, 08:00 to 20:00, by the clock of each recipient" {
		t.Error(got)
	}
	if got := campaignWhen(api.CampaignInfo{State: "scheduled", At: &later, Updated: noon}); *got != later {
		t.Error(got)
	}
	if got := campaignWhen(api.CampaignInfo{State: "draft", Updated: noon}); *got != noon {
		t.Error(got)
	}
	facts := campaignFacts(api.CampaignInfo{Campaign: api.Campaign{Campaign: "c", Name: "N\x1b[1m",
		CampaignContent: api.CampaignContent{HTML: "<p>", TrackOpens: new(false)}}, State: "held",
		Reason: "bounces", Detail: "8 % came back", States: n}, noon)
	text := ""
	for _, row := range facts.rows {
		text += strings.Join(row, ": ") + "\n"
	}
	for _, want := range []string{"state: held, bounces: 8 % came back\n", "html: 3 bytes\n",
		"opens: not tracked\n", "waiting: 5\n", "name: N�[1m\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
