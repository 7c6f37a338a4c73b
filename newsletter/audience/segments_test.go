package audience_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// counted counts a segment, and returns the result.
func (b *bench) counted(t *testing.T, id string) api.SegmentCount {
	t.Helper()
	if _, err := b.Segments.StartCount(t.Context(), "", id); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := b.Segments.Count(t.Context(), "", id)
		if err != nil {
			t.Fatal(err)
		}
		if c.State != "running" {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("still counting: %+v", c)
		}
		redisdb.Pause(t.Context(), 5*time.Millisecond)
	}
}

func TestASegmentCountsAndExplains(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	for i := range 90 {
		_, _, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: fmt.Sprintf("p%d@example.net", i),
			Attributes: map[string]any{"seats": float64(i), "plan": "pro"},
			Lists:      []api.SubscriptionRequest{{ListID: "weekly"}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.leave(t, "p80@example.net", "weekly")
	info, err := b.Segments.Create(t.Context(), "", api.Segment{Name: "Large ones",
		Rule: json.RawMessage(`{"and":[{"attribute":"seats","gte":60},{"list":"weekly","state":"subscribed"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if info.Segment.Segment != "large-ones" || len(info.Warnings) != 0 ||
		info.Sentence != "seats is at least 60, and subscribed on list weekly" {
		t.Errorf("%+v", info)
	}
	c := b.counted(t, "large-ones")
	if c.State != "done" || c.Done != 90 || c.Total != 90 || c.Count != 29 || len(c.Sample) != 20 {
		t.Errorf("%+v", c)
	}
	why, err := b.Segments.Explain(t.Context(), "", "large-ones", "p80@example.net")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(api.SegmentExplanation{Terms: []api.SegmentTerm{
		{Text: "seats is at least 60", Value: "80", Holds: true},
		{Text: "subscribed on list weekly", Value: "left"}}}, why); diff != "" {
		t.Error(diff)
	}
	page, err := b.Page(t.Context(), "", api.SubscriberQuery{Segment: "large-ones",
		CursorQuery: api.CursorQuery{PageSize: 100}})
	if err != nil || len(page.Subscribers) != 29 || page.Total != nil {
		t.Error("a page of the segment:", len(page.Subscribers), page.Total, err)
	}
}

func TestSegmentsTellWhatNobodyHas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, _, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: "ann@example.net",
		Attributes: map[string]any{"plan": "pro"}}); err != nil {
		t.Fatal(err)
	}
	info, err := b.Segments.Create(t.Context(), "", api.Segment{Segment: "s", Name: "S", Rule: json.RawMessage(
		`{"or":[{"attribute":"plan","gt":3},{"attribute":"plam","is":"pro"},{"list":"none"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"attribute plan is a text, and the rule compares it with a number",
		"no subscriber has an attribute plam", "there is no list none"}, info.Warnings); diff != "" {
		t.Error(diff)
	}
	_, err = b.Segments.Create(t.Context(), "", api.Segment{Name: "S", Segment: "a b",
		Rule: []byte(`{"tag":""}`)})
	f, _ := err.(*fault.Error)
	if f == nil || len(f.Fields) != 2 || f.Fields[0].Key != "segment" || f.Fields[1].Key != "rule.tag" {
		t.Error("wrong fields:", err)
	}
}

func TestSegmentsOfAnotherAccountDoNotExist(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.Segments.Create(t.Context(), "", api.Segment{Segment: "s", Name: "S",
		Rule: []byte(`{"tag":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	_, get := b.Segments.Get(t.Context(), "other", "s")
	_, update := b.Segments.Update(t.Context(), "other", "s", api.SegmentPatch{Name: new("X")})
	_, remove := b.Segments.Delete(t.Context(), "other", "s")
	_, count := b.Segments.StartCount(t.Context(), "other", "s")
	_, explain := b.Segments.Explain(t.Context(), "other", "s", "s0")
	_, page := b.Page(t.Context(), "other", api.SubscriberQuery{Segment: "s"})
	for what, err := range map[string]error{"get": get, "update": update, "delete": remove, "count": count,
		"explain": explain, "page": page} {
		if fault.CodeOf(err) != "SegmentNotFound" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := b.Segments.Update(t.Context(), "", "s", api.SegmentPatch{Version: new(1),
		Name: new("T")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Segments.Update(t.Context(), "", "s", api.SegmentPatch{Version: new(1),
		Name: new("U")}); fault.CodeOf(err) != "SegmentChanged" {
		t.Error("an old version:", err)
	}
}
