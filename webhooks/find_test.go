package webhooks

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
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
	most := 0
	if _, err := b.FindDeliveries(t.Context(), ep.ID, "7", 0, 5); err == nil || err.Error() != "no index" {
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
		got, err := b.FindDeliveries(t.Context(), ep.ID, end, page, size)
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
	if _, err := b.FindDeliveries(t.Context(), "nowhere", "7", 0, 5); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown endpoint: %v", err)
	}
	if _, err := setup(t).FindDeliveries(t.Context(), ep.ID, "7", 0, 5); !fault.Is(err, fault.NotFound) {
		t.Errorf("without an index: %v", err)
	}
}
