package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/internal/message"
)

// newsletterText has 4 KiB, newsletterHTML 2.2 KB with two values, a link and a way to leave.
var (
	newsletterText = "Hello {{rcpt.name}},\n\n" +
		strings.Repeat("It was a good month, and we have much to tell you about it.\n", 65) +
		"\nYour number is {{params.number}}.\n\nUnsubscribe: {{rcpt.unsubscribeUrl}}\n"
	newsletterHTML = "<html><head><title>News</title></head><body><h1>Hello {{rcpt.name}},</h1>\n" +
		strings.Repeat("<p>It was a good month, and we have <b>much</b> to tell you about it.</p>\n", 25) +
		"<p>Your number is {{params.number}}. <a href=\"https://shop.test/sale?week=48\">See the sale</a></p>\n" +
		"<p><a href=\"{{rcpt.unsubscribeUrl}}\">Unsubscribe</a></p></body></html>\n"
)

// BenchmarkMailing writes the mail of a campaign and looks whether it shows a way to leave, as is done for
// each of its people.
func BenchmarkMailing(b *testing.B) {
	for _, row := range []struct {
		name, text, html, format string
		clicks                   bool
	}{
		{"text", newsletterText, "", "", false}, {"html", "", newsletterHTML, "", false},
		{"html with clicks", "", newsletterHTML, "", true}, {"markdown", "", newsletterText, "markdown", false},
	} {
		b.Run(row.name, func(b *testing.B) {
			mailing := mailingOf(b, Shared{Subject: "News for {{rcpt.name}}", Text: row.text, HTML: row.html,
				Format: row.format, TrackClicks: &row.clicks, TrackOpens: &row.clicks})
			people := make([]Addressee, 1000)
			for i := range people {
				people[i] = reader(uint64(i), fmt.Sprintf("Ann Reader %d", i))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, mail, err := mailing.Write(b.Context(), people[i%len(people)])
				if err != nil || len(mailing.Captive(mail)) > 0 {
					b.Fatal(err, mailing.Captive(mail))
				}
			}
		})
	}
}

func mailingOf(t testing.TB, sh Shared) *Mailing {
	t.Helper()
	b := setup(t, Options{ServiceURL: func() string { return "https://p.test/base/" }})
	b.store.Tokens = testStamps(t)
	mailing, err := b.Mailings.Mailing(t.Context(), sh)
	if err != nil {
		t.Fatal(err)
	}
	return mailing
}

// reader is someone who gets a mailing.
func reader(number uint64, name string) Addressee {
	id := ulid.ULID{}
	for i := range 8 {
		id[15-i] = byte(number >> (8 * i))
	}
	return Addressee{ID: id.String(),
		To: message.Address{Name: name, Address: fmt.Sprintf("r%d@x.test", number)}, ListID: "news",
		Date:   storyBegin.Add(time.Duration(number) * time.Second),
		Params: map[string]any{"number": fmt.Sprint("A-", 1000+number)}, Campaign: &CampaignMail{}}
}
