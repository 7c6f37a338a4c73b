package webhooks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
)

func TestFindDeliveries(t *testing.T) {
	t.Parallel()
	match := func(context.Context, string, []string) (map[string]bool, error) {
		return nil, errors.New("no index")
	}
	b := setup(t, func(o *Options) {
		o.Match = func(ctx context.Context, q string, ids []string) (map[string]bool, error) {
			return match(ctx, q, ids)
		}
	})
	ep := b.endpoint(answering(t, 200).URL)
	for i := range 2_100 {
		b.emit("E"+strconv.Itoa(i), event.MessageSent, "snd")
	}
	b.fanOutAll()
	most, seven := 0, api.DeliveryQuery{Q: "7", PageSize: 5}
	if _, err := b.FindDeliveries(t.Context(), ep.ID, seven); err == nil || err.Error() != "no index" {
		t.Errorf("a search that fails: %v", err)
	}
	match = func(_ context.Context, q string, ids []string) (map[string]bool, error) {
		most = max(most, len(ids))
		found := map[string]bool{"": true, "of another endpoint": true}
		for _, id := range ids {
			found[id] = strings.HasSuffix(id, q)
		}
		return found, nil
	}
	find := func(end string, page, size int) (api.DeliveryPage, []string) {
		t.Helper()
		got, err := b.FindDeliveries(t.Context(), ep.ID, api.DeliveryQuery{Q: end, Page: page, PageSize: size})
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]string, len(got.Deliveries))
		for i, d := range got.Deliveries {
			ids[i] = d.QueueID
		}
		return got, ids
	}
	// Of 2,100 the newest 2,000 are looked at. All were created at about the same time, so which those are is
	// not for this test to say.
	got, ids := find("77", 0, 5)
	if got.Total < 18 || got.Total > 21 || !got.Partial || len(ids) != 5 || most != searchedPer {
		t.Errorf("%d found, partial %v, %v, asked for %d at once", got.Total, got.Partial, ids, most)
	}
	for _, id := range ids {
		if !strings.HasSuffix(id, "77") {
			t.Errorf("%s does not match", id)
		}
	}
	if _, second := find("77", 1, 5); len(second) != 5 || slices.Equal(second, ids) {
		t.Errorf("the second page is %v", second)
	}
	if beyond, rows := find("77", 1<<60, 5); len(rows) != 0 || beyond.Total != got.Total {
		t.Errorf("beyond the last page there is %v", rows)
	}
	if _, err := b.FindDeliveries(t.Context(), "nowhere", seven); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown endpoint: %v", err)
	}
	if _, err := setup(t).FindDeliveries(t.Context(), ep.ID, seven); !fault.Is(err, fault.NotFound) {
		t.Errorf("without an index: %v", err)
	}
}

func TestDeliveriesOfAStatusAndAnEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(map[int]int{1: 200, 2: 400, 3: 503}[n])
	}).URL)
	for id, kind := range map[string]event.Type{"E1": event.MessageSent, "E2": event.MessageSent,
		"E3": event.MessageSent, "E4": event.MessageFailed} {
		b.emit(id, kind, "snd")
	}
	b.fanOutAll()
	for _, id := range []string{"E1", "E2", "E3"} {
		b.run(ep.ID, id)
	}
	for _, row := range []struct {
		status, event string
		want          []string
	}{
		{"delivered", "", []string{"E1"}}, {"failed", "", []string{"E2"}}, {"skipped", "", nil},
		{"pending", "", []string{"E3", "E4"}}, {"pending", "messageSent", []string{"E3"}},
		{"", "messageFailed", []string{"E4"}}, {"delivered", "messageFailed", nil},
	} {
		got, err := b.FindDeliveries(t.Context(), ep.ID, api.DeliveryQuery{Status: row.status, Event: row.event,
			PageSize: 10})
		var ids []string
		for _, d := range got.Deliveries {
			ids = append(ids, d.ID)
		}
		slices.Sort(ids)
		if err != nil || !slices.Equal(ids, row.want) || got.Total != len(row.want) || got.Partial {
			t.Errorf("%s %s: %v of %d, %v; want %v", row.status, row.event, ids, got.Total, err, row.want)
		}
	}
	for field, q := range map[string]api.DeliveryQuery{"status": {Status: "done"}, "event": {Event: "mail"}} {
		var wrong *fault.Error
		if _, err := b.FindDeliveries(t.Context(), ep.ID, q); !errors.As(err, &wrong) ||
			len(wrong.Fields) != 1 || wrong.Fields[0].Key != field {
			t.Errorf("a wrong %s: %v", field, err)
		}
	}
	if _, err := b.FindDeliveries(t.Context(), "nowhere", api.DeliveryQuery{Status: "failed"}); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("an unknown endpoint: %v", err)
	}
}
