package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/suppression"
)

func TestRatesOfACampaign(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.sender.replies["r3@x.test"] = "550 5.1.1 no such user"
	b.suppress(t, suppression.Entry{Address: "r4@x.test", Reason: suppression.Manual})
	ids := make([]string, 6)
	for i := range ids {
		tag := "spring"
		if i == 5 {
			tag = "summer"
		}
		ids[i] = b.submit(t, api.SubmitRequest{To: for1(fmt.Sprintf("r%d@x.test", i)), Tags: []string{tag},
			Lane: api.Bulk})
		b.deliver(t, ids[i])
	}
	fact := func(i int, kind event.Type, key string, bot bool) Fact {
		return Fact{Key: key, Type: kind, MessageID: ids[i], Details: event.Later{Bot: bot}}
	}
	b.learn(t,
		fact(0, event.MessageDelivered, "d", false), fact(0, event.TrackOpen, "1", false),
		fact(0, event.TrackOpen, "2", false), fact(0, event.TrackOpen, "3", true),
		fact(1, event.TrackOpen, "1", true), fact(1, event.ListUnsubscribe, "u", false),
		fact(2, event.TrackClick, "1", false), fact(2, event.MessageComplaint, "c", false),
		fact(5, event.TrackClick, "1", false), fact(5, event.MessageBounce, "b", false),
	)
	got, err := b.Rates(t.Context(), api.RatesQuery{Tag: "spring"})
	want := api.Rates{
		Messages: 5, Sent: 3, Failed: 1, Suppressed: 1, Delivered: 1, Complained: 1, Unsubscribed: 1, Opened: 2,
		OpenedBots: 2, Clicked: 1,
	}
	if err != nil || got != want {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	for name, q := range map[string]api.RatesQuery{
		"nobody's tag": {Tag: "winter"}, "another account": {Account: "other"}, "the other lane": {
			Lane: api.Transactional}, "no list": {ListID: "news"}, "no gateway": {Gateway: "gw"},
		"later": {CreatedAfter: b.clock.Now().Add(time.Hour)},
	} {
		if got, err := b.Rates(t.Context(), q); err != nil || got != (api.Rates{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	through := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Gateway: "gw"})
	b.deliver(t, through)
	b.learn(t, Fact{Key: "b", Type: event.MessageBounce, MessageID: through})
	if got, err := b.Rates(t.Context(), api.RatesQuery{Gateway: "gw"}); err != nil ||
		got != (api.Rates{Messages: 1, Sent: 1, Bounced: 1}) {
		t.Errorf("through the gateway: %+v, %v", got, err)
	}
	if all, err := b.Rates(t.Context(), api.RatesQuery{}); err != nil || all.Messages != 7 || all.Bounced != 2 ||
		all.Clicked != 2 {
		t.Errorf("all: %+v, %v", all, err)
	}
}
