package tracking

import (
	"fmt"
	"testing"
	"time"
)

func TestMachines(t *testing.T) {
	const (
		chrome  = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
		mail    = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
		outlook = "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17928; Pro)"
	)
	for _, tt := range []struct {
		name, agent, want string
	}{
		{"Chrome", chrome, ""},
		{"Apple Mail", mail, ""},
		{"Outlook", outlook, ""},
		{"Thunderbird", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.4.0", ""},
		{"iPhone", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148", ""},
		{"a telephone by Cubot", "Mozilla/5.0 (Linux; Android 9; CUBOT X19) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36", ""},
		{"Gmail's proxy", "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)", ""},
		{"Yahoo's proxy", "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html", ""},
		{"Mail Privacy Protection", "Mozilla/5.0", ApplePrivacy},
		{"Gmail ahead of the reader",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0", GmailPrefetch},
		{"an Edge of 2015", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246", ""},
		{"nameless", "", NoAgent},
		{"blank", "  ", NoAgent},
		{"Googlebot", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", Crawler},
		{"bingbot in capitals", "Mozilla/5.0 BINGBOT/2.0", Crawler},
		{"a bot at the end", "some bot", Crawler},
		{"a bot behind a Cubot", "Cubot robot", Crawler},
		{"bottle", "Bottle/1.0", ""},
		{"curl", "curl/8.5.0", Crawler},
		{"Go", "Go-http-client/2.0", Crawler},
		{"Python", "python-requests/2.32.3", Crawler},
		{"headless", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/131.0.0.0 Safari/537.36", Crawler},
		{"link preview", "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5", Crawler},
		{"Facebook", "facebookexternalhit/1.1", Crawler},
		{"Outlook looking whether it is there", "Microsoft Office Existence Discovery", Crawler},
		{"a gateway that says so", "Mozilla/5.0 Mimecast", Crawler},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, k := range []kind{opened, clicked} {
				if got := botRule(k, tt.agent, time.Hour); got != tt.want {
					t.Errorf("%s: %q, want %q", k, got, tt.want)
				}
			}
		})
	}
}

func TestAClickBeforeAnybodyCanHaveRead(t *testing.T) {
	for age, want := range map[time.Duration]string{0: TooSoon, 1900 * time.Millisecond: TooSoon,
		2 * time.Second: "", time.Hour: ""} {
		if got := botRule(clicked, agentOfAnn, age); got != want {
			t.Errorf("click after %v: %q, want %q", age, got, want)
		}
		if got := botRule(opened, agentOfAnn, age); got != "" {
			t.Errorf("open after %v: %q", age, got)
		}
	}
}

// TestBursts: clicks on links (letters) of an email at times, and which of them were a program's.
func TestBursts(t *testing.T) {
	type at struct {
		link string
		ms   int
		bot  bool
	}
	for _, tt := range []struct {
		name   string
		clicks []at
	}{
		{"two at once", []at{{"a", 0, false}, {"b", 0, false}}},
		{"one link, often", []at{{"a", 0, false}, {"a", 1000, false}, {"a", 2000, false}, {"a", 3000, false}}},
		{"three at once, the first too", []at{{"a", 0, true}, {"b", 500, true}, {"c", 2000, true}}},
		{"two and, later, a third", []at{{"a", 0, false}, {"b", 500, false}, {"c", 2600, false},
			{"d", 5000, false}}},
		{"many", []at{{"a", 0, true}, {"b", 10, true}, {"c", 20, true}, {"d", 30, true}, {"e", 40, true}}},
		{"the same link again is no third", []at{{"a", 0, false}, {"b", 500, false}, {"a", 1000, false},
			{"b", 1500, false}}},
		{"one before the burst", []at{{"x", 0, false}, {"a", 5000, true}, {"b", 5100, true}, {"c", 5200, true}}},
		{"ten seconds after it, and then a person", []at{{"a", 0, true}, {"b", 0, true}, {"c", 0, true},
			{"a", 10_000, true}, {"a", 10_100, false}}},
		{"twice", []at{{"a", 0, true}, {"b", 0, true}, {"c", 0, true}, {"a", 20_000, true}, {"b", 20_000, true},
			{"c", 21_000, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := setup(t, Options{})
			began := w.clock
			var got, want []string
			for i, c := range tt.clicks {
				w.clock = began.Add(time.Duration(c.ms) * time.Millisecond)
				if err := w.flush(t.Context(), w.clock.Add(-held)); err != nil {
					t.Fatal(err)
				}
				w.Click(w.click(w.id, "https://shop.test/"+c.link), by(fmt.Sprint(agentOfAnn, i)))
				want = append(want, fmt.Sprint("https://shop.test/", c.link, c.bot))
			}
			w.Click(w.click(w.message(time.Hour), "https://shop.test/other"), by(agentOfAnn)) // another email
			want = append(want, "https://shop.test/otherfalse")
			for _, f := range w.all() {
				got = append(got, fmt.Sprint(f.Details.URL, f.Details.Bot))
				if f.Details.Bot && f.Details.BotReason != Burst || !f.Details.Bot && f.Details.BotReason != "" {
					t.Errorf("%s: reason %q", f.Details.URL, f.Details.BotReason)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}
