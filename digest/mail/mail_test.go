package mail

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/templates/render"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

var saturday = time.Date(2026, 11, 21, 7, 12, 0, 0, time.UTC)

// one is a digest of a single event.
func one() Digest {
	g := Group{Category: "comments", EntityType: "report", EntityID: "7", Kind: "Comments",
		Title: "Budget 2027", URL: "https://app.example.com/reports/7?tab=talk&at=3", Count: 1, First: saturday,
		Last: saturday, Actors: []Actor{{ID: "u1", Name: "Ann Miller", URL: "https://app.example.com/people/1"}}}
	return Digest{Groups: []Group{g}, Total: 1, Schedule: "immediate", Period: "2026-11-21T07:12:00Z",
		From: saturday, To: saturday}
}

// several is a digest with one group of five events.
func several() Digest {
	d := one()
	g := &d.Groups[0]
	g.Count, g.Others, d.Total = 5, 2, 5
	g.First, d.From = saturday.Add(-9*time.Hour), saturday.Add(-9*time.Hour)
	g.Actors = append(g.Actors, Actor{ID: "u2", Name: "Bo"}, Actor{ID: "u3", Name: "Cy"})
	return d
}

// week is a digest of so many groups of all kinds, and a rest of twelve events in five groups.
func week(groups int) Digest {
	d := Digest{Schedule: "weekly@mon,08:00", Period: "2026-W47", From: saturday.Add(-6 * 24 * time.Hour),
		To: saturday, Rest: Rest{Groups: 5, Events: 12}, FeedURL: "https://app.example.com/feed"}
	for i := range groups {
		g := Group{Category: "comments", Kind: "Comments", EntityType: "report", EntityID: fmt.Sprint(i),
			Title: fmt.Sprintf("Report %d of the planning group", i+1),
			URL:   fmt.Sprintf("https://app.example.com/reports/%d", i+1), Count: 1 + i%4,
			Last: saturday.Add(-time.Duration(i) * 3 * time.Hour), Priority: "normal"}
		if i%5 == 3 {
			g.Category, g.Kind, g.URL = "invoices", "Invoices", ""
			g.Title = fmt.Sprintf("Invoice %d is overdue", 4000+i)
		}
		for n, name := range []string{"Ann Miller", "Bo", "Cy de Vries"}[:min(i%4, g.Count, 3)] {
			g.Actors = append(g.Actors, Actor{ID: fmt.Sprint(n), Name: name})
		}
		g.Others, g.First = max(g.Count-3, 0), g.Last.Add(-time.Hour)
		d.Groups = append(d.Groups, g)
		d.Total += g.Count
	}
	d.Total += d.Rest.Events
	return d
}

// rightToLeft is a digest with titles and names that are written from right to left.
func rightToLeft() Digest {
	d := week(4)
	d.Rest, d.FeedURL, d.Schedule, d.From, d.Total = Rest{}, "", "daily@08:00", saturday.Add(-3*time.Hour), 10
	for i, title := range []string{"ميزانية 2027 (المسودة)", "חופשה 3", "Budget 2027", "فاتورة 4003"} {
		g := &d.Groups[i]
		g.Title, g.Kind, g.Last = title, "تعليقات", saturday.Add(-time.Duration(i)*time.Hour)
		g.Actors = []Actor{{Name: "سارة"}, {Name: "Bo"}, {Name: "דנה"}}[:min(g.Count, 3)]
	}
	return d
}

// hostile is a digest of what must not do harm.
func hostile() Digest {
	d := week(4)
	d.Schedule = "custom@{{x}}"
	mean := []Group{
		{Title: "{{rcpt.address}} {{{params}}} {{#each", Kind: "<b>Kind</b>", URL: "javascript:alert(1)"},
		{Title: "two\r\nBcc: all@example.com\u2028lines", URL: "https://x.test/\"><script>alert(1)</script>"},
		{Title: "<img src=x onerror=alert(1)>", URL: "https://x.test/?q={{params}}&b='1'"},
		{Title: "\u202egnp.exe </title><script>", URL: "HTTPS://x.test/%0d%0a"},
	}
	for i, g := range mean {
		d.Groups[i].Title, d.Groups[i].Kind, d.Groups[i].URL = g.Title, g.Kind, g.URL
		d.Groups[i].Actors = []Actor{{Name: "Ann\n{{x}}<i>"}, {Name: ""}, {Name: "{a} {n}\x00"}}
	}
	return d
}

// goldens are mails that people have looked at.
var goldens = map[string]struct {
	digest Digest
	locale string
	zone   string
	alone  bool // nobody has pages: there is no public address
}{
	"one":              {digest: one(), locale: "en", zone: "America/New_York"},
	"one-de":           {digest: one(), locale: "de-AT", zone: "Europe/Vienna"},
	"one-alone":        {digest: one(), alone: true},
	"several":          {digest: several(), locale: "en-GB", zone: "Europe/London"},
	"several-fr":       {digest: several(), locale: "fr", zone: "Europe/Paris"},
	"week":             {digest: week(50), locale: "en", zone: "America/New_York"},
	"week-de":          {digest: week(7), locale: "de", zone: "Europe/Berlin"},
	"week-fr":          {digest: week(7), locale: "fr-CA", zone: "America/Montreal"},
	"right-to-left":    {digest: rightToLeft(), locale: "ar", zone: "Africa/Cairo"},
	"right-to-left-en": {digest: rightToLeft(), locale: "en"},
	"hostile":          {digest: hostile(), locale: "en", zone: "Pacific/Apia"},
	"nothing":          {digest: Digest{Schedule: "daily@08:00"}, locale: "en"},
}

func TestGoldenMails(t *testing.T) {
	for name, c := range goldens {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			pages := "https://mail.example.com"
			if c.alone {
				pages = ""
			}
			mail := filled(t, c.digest, c.locale, zone, pages)
			head := "Subject: " + mail.Subject + "\nPreview: " + mail.PreviewText + "\n\n"
			golden(t, name+".txt", head+mail.Text)
			golden(t, name+".html", mail.HTML)
			checkLines(t, c.digest, c.locale, zone, mail.Text)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-golden +written)\n%s", name, diff)
	}
}

// filled fills an email as the outbox does where templates must have all their variables.
func filled(t *testing.T, d Digest, locale string, zone *time.Location, pages string) render.Mail {
	t.Helper()
	mail, err := Write(d, locale, zone)
	if err != nil {
		t.Fatal(err)
	}
	return rendered(t, mail, locale, pages)
}

func rendered(t *testing.T, mail Content, locale, pages string) render.Mail {
	t.Helper()
	r, err := render.New(render.Content{
		Source: render.Source{Subject: mail.Subject, PreviewText: mail.PreviewText, HTML: mail.HTML,
			Text: mail.Text},
		Options: render.Options{EscapedOnly: true}, Strict: true, Locale: locale,
		From: message.Address{Name: "Shop", Address: "shop@example.com"},
	})
	if err != nil {
		t.Fatal(err)
	}
	identity := render.Identity{MessageID: "<digest@example.com>"}
	if pages != "" {
		identity.UnsubscribeURL, identity.PreferencesURL = pages+"/unsubscribe?t=abc", pages+"/preferences?t=abc"
	}
	composed, words, err := r.Render(t.Context(), render.Personalization{
		To:     []message.Address{{Name: "Dee", Address: "dee@example.net"}},
		Params: mail.Params, Date: saturday.UnixMilli()}, identity, true)
	if err != nil {
		t.Fatal(err)
	}
	if composed.Subject != words.Subject {
		t.Errorf("the subject is %q in the message, %q alone", composed.Subject, words.Subject)
	}
	return words
}
