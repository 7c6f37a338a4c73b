package feedback

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/outbox"
)

func TestWhatProvidersTellMeans(t *testing.T) {
	for _, row := range []struct {
		name   string
		told   provider.Event
		typ    event.Type // empty means no more than a receipt
		effect effect
		bounce string
	}{
		{"accepted", provider.Event{Kind: provider.Accepted}, "", "", ""},
		{"delivered", provider.Event{Kind: provider.Delivered}, event.MessageDelivered, "", ""},
		{"deferred", provider.Event{Kind: provider.Deferred, Enhanced: "4.2.2"}, event.MessageDeferred, "", ""},
		{"hard bounce", provider.Event{Kind: provider.Bounced, Bounce: provider.Hard,
			Reason: provider.ReasonBounced}, event.MessageBounce, effectHard, "hard"},
		{"hard bounce with a reply", provider.Event{Kind: provider.Bounced, Bounce: provider.Hard, SMTPCode: 550,
			Enhanced: "5.1.1", Diagnostic: "smtp; 550 5.1.1 user unknown"}, event.MessageBounce, effectHard, "hard"},
		{"soft bounce", provider.Event{Kind: provider.Bounced, Bounce: provider.Soft, SMTPCode: 452,
			Enhanced: "4.2.2", Diagnostic: "452 4.2.2 mailbox full"}, event.MessageBounce, effectSoft, "soft"},
		{"blocked, says the provider", provider.Event{Kind: provider.Bounced, Bounce: provider.Soft,
			Reason: provider.ReasonBlocked}, event.MessageBounce, "", "soft"},
		{"policy, says the code", provider.Event{Kind: provider.Bounced, Bounce: provider.Hard, SMTPCode: 550,
			Enhanced: "5.7.1"}, event.MessageBounce, "", "soft"},
		{"reputation, say the words", provider.Event{Kind: provider.Bounced, Bounce: provider.Hard, SMTPCode: 550,
			Diagnostic: "550 blocked using zen.spamhaus.org"}, event.MessageBounce, "", "soft"},
		{"dropped: bounced before", provider.Event{Kind: provider.Dropped, Reason: provider.ReasonBounced},
			event.MessageBounce, effectHard, "hard"},
		{"dropped: no address", provider.Event{Kind: provider.Dropped, Reason: provider.ReasonInvalid},
			event.MessageBounce, effectHard, "hard"},
		{"dropped: complained before", provider.Event{Kind: provider.Dropped, Reason: provider.ReasonSpam},
			event.MessageBounce, effectComplaint, ""},
		{"dropped: unsubscribed before", provider.Event{Kind: provider.Dropped,
			Reason: provider.ReasonUnsubscribed}, event.MessageBounce, effectUnsubscribe, ""},
		{"dropped: something else", provider.Event{Kind: provider.Dropped, Reason: provider.ReasonOther},
			event.MessageBounce, "", ""},
		{"dropped: content", provider.Event{Kind: provider.Dropped, Reason: provider.ReasonBlocked},
			event.MessageBounce, "", ""},
		{"complained", provider.Event{Kind: provider.Complained, Reason: provider.ReasonSpam},
			event.MessageComplaint, effectComplaint, ""},
		{"taken out of the spam folder", provider.Event{Kind: provider.Complained, Diagnostic: "not-spam"},
			event.MessageComplaint, "", ""},
		{"unsubscribed", provider.Event{Kind: provider.Unsubscribed}, event.ListUnsubscribe, effectUnsubscribe, ""},
		{"opened", provider.Event{Kind: provider.Opened}, event.TrackOpen, "", ""},
		{"clicked", provider.Event{Kind: provider.Clicked, URL: "https://shop.example/"}, event.TrackClick, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.told.Provider, row.told.Key = provider.Generic, "k"
			e, ok := providerEntry(row.told, "", startOfTime)
			if !ok {
				e.Type = ""
			}
			if e.Type != row.typ || e.Effect != row.effect || e.Details.BounceType != row.bounce {
				t.Errorf("%s, effect %q, bounce %q; want %s, %q, %q", e.Type, e.Effect, e.Details.BounceType, row.typ,
					row.effect, row.bounce)
			}
		})
	}
}

func TestEntryKeepsWhatWasTold(t *testing.T) {
	at := startOfTime.Add(-time.Hour)
	e, _ := providerEntry(provider.Event{
		Provider: provider.SES, Kind: provider.Clicked, Key: "k1", Time: at, Recipient: "ann@example.net",
		ProviderMessageID: "0100-1", MessageID: "<own@shop.example>",
		URL: "https://shop.example/", UserAgent: "Mail", IP: "192.0.2.77", Bot: true,
		Metadata: map[string]string{"postroom_id": ann},
	}, "masked", startOfTime)
	want := entry{
		Fact: outbox.Fact{
			Key: "ses/k1", Type: event.TrackClick, Recipient: "ann@example.net", Index: -1, At: at,
			Details: event.Later{
				Source: "ses", ProviderMessageID: "0100-1", URL: "https://shop.example/", UserAgent: "Mail",
				RemoteAddress: "192.0.2.0", Bot: true, BotReason: "provider",
			},
		},
		Refs: []string{"id:" + ann, "<own@shop.example>", "ses:0100-1"}, Received: startOfTime,
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
	line, err := e.line()
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseEntry(line)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back); diff != "" {
		t.Error(diff)
	}
}

func TestAddressKept(t *testing.T) {
	for _, row := range []struct{ ip, keep, want string }{
		{"192.0.2.77", "", "192.0.2.0"}, {"192.0.2.77", "masked", "192.0.2.0"}, {"192.0.2.77", "ip", "192.0.2.77"},
		{"192.0.2.77", "none", ""},
		{"2001:db8:1:2::3", "", "2001:db8:1::"}, {"nonsense", "ip", ""}, {"", "ip", ""},
	} {
		if got := AddressKept(row.ip, row.keep); got != row.want {
			t.Errorf("AddressKept(%q, %q) = %q, want %q", row.ip, row.keep, got, row.want)
		}
	}
}

func TestKeysAreShort(t *testing.T) {
	if got := shortKey("ses", "k"); got != "ses/k" {
		t.Error(got)
	}
	long, other := shortKey("ses", strings.Repeat("k", 500)), shortKey("ses", strings.Repeat("k", 501))
	if len(long) > maxKey || long == other {
		t.Errorf("%q, %q", long, other)
	}
}

// The future is a clock gone wrong.
func TestSensibleTime(t *testing.T) {
	for _, row := range []struct{ at, want time.Time }{
		{time.Time{}, startOfTime}, {startOfTime.Add(time.Hour), startOfTime},
		{startOfTime.Add(-time.Hour), startOfTime.Add(-time.Hour)},
	} {
		if got := sensible(row.at, startOfTime); !got.Equal(row.want) {
			t.Errorf("%v: %v, want %v", row.at, got, row.want)
		}
	}
}
