package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// TestPreferencesAreWords: what is shown of a preference is what is written for it.
func TestPreferencesAreWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]api.DigestPreference{
		"off":                  {Mode: "off"},
		"daily":                {Mode: "daily"},
		"daily 08:05":          {Mode: "daily", Hour: new(8), Minute: new(5)},
		"hourly :30":           {Mode: "hourly", Minute: new(30)},
		"weekly 18:00":         {Mode: "weekly", Hour: new(18), Minute: new(0)},
		"weekly mon,thu 08:00": {Mode: "weekly", Weekdays: []string{"mon", "thu"}, Hour: new(8), Minute: new(0)},
		"monthly 31 08:00":     {Mode: "monthly", Day: 31, Hour: new(8), Minute: new(0)},
		"monthly":              {Mode: "monthly"},
		"immediate":            {Mode: "immediate"},
		"immediate 10m":        {Mode: "immediate", Gap: "10m"},
		"cron 0 9 * * 1-5":     {Mode: "custom", Cron: "0 9 * * 1-5"},
		"mon 08:30, fri 16:00": {Mode: "custom", Times: []api.DigestWeekTime{{Weekday: "mon", At: "08:30"},
			{Weekday: "fri", At: "16:00"}}},
	} {
		got, err := parsePreference(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
		if again := preferenceText(got); again != text {
			t.Errorf("%q is shown as %q", text, again)
		}
	}
	for _, text := range []string{"", "sometimes", "daily noon", "hourly 08:30", "daily :30",
		"daily 08:00 09:00", "off 08:00", "monthly 0", "mon 08:30, noon",
		`{"mode":"daily","hours":8}`, `{"mode":"daily"} x`} {
		if got, err := parsePreference(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	got, err := parsePreference(`{"mode":"daily","hour":8}`)
	if err != nil || preferenceText(got) != "daily 08:00" {
		t.Errorf("JSON: %+v, %v", got, err)
	}
}

// TestThePreferenceOfAKindIsRemoved by the word default. A flag that is not there changes nothing.
func TestThePreferenceOfAKindIsRemoved(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": `{}`, "default": `{"preference":null}`,
		"off": `{"preference":{"mode":"off"}}`} {
		p, err := digestKindFields{Preference: text}.patch()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(p); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	if p, err := (digestKindFields{Preference: "sometimes"}).patch(); err == nil {
		t.Errorf("%+v", p)
	}
}

func TestQuietHoursAreWords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"22:00-07:00", "fri,sat 22:00-09:00"} {
		q, err := parseQuiet(text)
		if err != nil || quietText(q) != text {
			t.Errorf("%q: %+v, %v", text, q, err)
		}
	}
	if q, err := parseQuiet("at night"); err == nil {
		t.Errorf("at night: %+v", q)
	}
}

// TestTableWithoutHeadings: on a terminal facts are drawn like tables.
func TestTableWithoutHeadings(t *testing.T) {
	t.Parallel()
	g := digestRunFacts(api.DigestRun{Run: "abc", Reason: strings.Repeat("long ", 50), Scheduled: noon}, noon)
	text := g.draw(60)
	if !strings.Contains(text, "abc") {
		t.Errorf("no id in\n%s", text)
	}
	for line := range strings.Lines(text) {
		if width := lipgloss.Width(strings.TrimRight(line, "\n")); width > 60 {
			t.Errorf("a line of %d cells: %s", width, line)
		}
	}
}

// TestDigestTablesAreNarrow: what strangers write makes no line longer than a small terminal.
func TestDigestTablesAreNarrow(t *testing.T) {
	t.Parallel()
	long, at := strings.Repeat("wide ", 60), noon.Add(72*time.Hour)
	var plain bytes.Buffer
	con := &console{out: &plain}
	for name, g := range map[string]grid{
		"kinds": digestKindsGrid([]api.DigestKindInfo{{DigestKind: api.DigestKind{Category: "comment",
			Account: long, Title: map[string]string{"de": long}, Template: long, Required: true,
			Preference: &api.DigestPreference{Mode: "custom", Cron: long}}}}),
		"recipients": digestRecipientsGrid([]api.DigestRecipient{{Recipient: "user-17", Email: long, TZ: long,
			Waiting: map[string]int{"comment": 12345}, Next: []api.DigestNext{{At: at}}}}, noon),
		"runs": digestRunsGrid([]api.DigestRun{{Run: strings.Repeat("a", 26), Recipient: long,
			State: "processing", Events: 12345, Reason: long, Scheduled: at}}, noon),
		"groups": digestGroupsGrid([]api.DigestGroup{{Category: long, EntityType: long, Title: long, Count: 12345,
			Actors: []api.DigestActor{{Name: long}}, Others: 3, Last: at}}, noon),
		"events": digestWaitingGrid([]api.DigestWaitingEvent{{DigestEvent: api.DigestEvent{Category: long,
			EntityType: long, Title: long, Actor: &api.DigestActor{Name: long}, Priority: "urgent",
			OccurredAt: &at}}}, noon),
	} {
		plain.Reset()
		con.show(g)
		for line := range strings.Lines(plain.String()) {
			if width := lipgloss.Width(strings.TrimRight(line, "\n")); width > 80 {
				t.Errorf("%s: a line of %d cells: %s", name, width, line)
			}
		}
	}
}

// TestManyEventsGoInBatches: a long file is handed over a thousand events at a time, and fewer if they are
// large. After an error the rest of it goes on from the line that is told.
func TestManyEventsGoInBatches(t *testing.T) {
	t.Parallel()
	var sizes []int
	failAt := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req api.DigestEventsRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		if sizes = append(sizes, len(req.Events)); len(sizes) == failAt {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		answer := api.DigestEventsAnswer{}
		for range req.Events {
			answer.Events = append(answer.Events, api.DigestEventResult{Success: true, State: "waiting"})
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	file := func(n, size int) *strings.Reader {
		line := fmt.Sprintf(`{"recipient":"ann","title":%q}`+"\n", strings.Repeat("x", size))
		return strings.NewReader(strings.Repeat(line, n))
	}
	s := &session{Context: context.Background(), client: api.NewClient(server.URL, "", nil)}
	for _, tc := range []struct {
		name          string
		n, size, skip int
		failAt        int
		want          []int
		done          int
	}{
		{"many", 2500, 10, 0, 0, []int{1000, 1000, 500}, 2500},
		{"exactly a batch", 1000, 10, 0, 0, []int{1000}, 1000},
		{"large ones", 200, 70_000, 0, 0, []int{99, 99, 2}, 200},
		{"the rest", 2500, 10, 2000, 0, []int{500}, 2500},
		{"an error", 2500, 10, 0, 2, []int{1000, 1000}, 1000},
		{"nothing", 0, 0, 0, 0, nil, 0},
	} {
		sizes, failAt = nil, tc.failAt
		b := eventBatch{}
		err := b.send(s, file(tc.n, tc.size), tc.skip)
		if (err != nil) != (tc.failAt > 0) || !slices.Equal(sizes, tc.want) || b.done != tc.done {
			t.Errorf("%s: %v, batches of %v, %d lines done", tc.name, err, sizes, b.done)
		}
	}
	if err := (&eventBatch{}).send(s, file(1, lineBytes), 0); err == nil ||
		!strings.Contains(err.Error(), "line 1 is longer") {
		t.Errorf("a line that is too long: %v", err)
	}
}
