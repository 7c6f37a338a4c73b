package digest_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/message"
)

// TestMailsOfAScheduleAreAConversation: with digest.threads each refers to the same message, which no other
// schedule and no other reader has. Without it none refers to any.
func TestMailsOfAScheduleAreAConversation(t *testing.T) {
	t.Parallel()
	for _, threads := range []bool{true, false} {
		b := setup(t, func(o *digest.Options) { o.Threads = threads })
		b.prefer(t, "ann", map[string]*api.DigestPreference{"like": {Mode: "hourly"}})
		like := about("ann", "1", "Bo")
		like.Category = "like"
		roots := map[string][]string{}
		for range 2 {
			b.add(t, about("ann", "1", "Bo"), about("bob", "1", "Bo"), like)
			before := len(b.mails.all())
			b.Advance(time.Hour)
			b.settle(t)
			b.morning(t)
			for _, m := range b.mails.all()[before:] {
				name := m.To[0].Address + " " + saidIn(t, m).Groups[0].Category
				roots[name] = append(roots[name], m.References...)
				draft := message.Draft{From: message.Address{Address: "us@example.com"}, Date: b.Now(),
					To: []message.Address{message.Address(m.To[0])}, Text: "x", References: m.References}
				mail, err := message.Compose(draft, rand.Reader)
				if err != nil || strings.Contains(string(mail.Raw), "\r\nReferences: <") != threads {
					t.Errorf("references %v: %v, %s", m.References, err, mail.Raw)
				}
			}
		}
		seen := map[string]string{}
		for name, all := range roots {
			if !threads && len(all) > 0 || threads && (len(all) != 2 || all[0] != all[1]) {
				t.Errorf("threads %v: mails of %s refer to %v", threads, name, all)
				continue
			}
			if threads && seen[all[0]] != "" {
				t.Errorf("%s and %s have one conversation", name, seen[all[0]])
			}
			if threads {
				seen[all[0]] = name
			}
		}
		if len(roots) != 3 {
			t.Errorf("mails of %v", roots)
		}
	}
}
