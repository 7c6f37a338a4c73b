package audience_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/segment"
)

// every is the set of the places that a number divides.
func every(n int) segment.Set { return func(place int) bool { return place%n == 0 } }

// mailed are campaigns of the account default, with what people of each chunk did.
type mailed struct {
	chunks map[string][]segment.Engaged
	reads  int
}

func (m *mailed) Runs(_ context.Context, account, campaign string) (int, error) {
	chunks, ok := m.chunks[campaign]
	if !ok || account != "default" {
		return 0, fault.New(fault.NotFound, "CampaignNotFound", "There is no campaign %q", campaign)
	}
	return len(chunks), nil // one run, or none
}

func (m *mailed) Engaged(ctx context.Context, account, campaign string, chunk int) (segment.Engaged, error) {
	m.reads++
	if _, err := m.Runs(ctx, account, campaign); err != nil {
		return segment.Engaged{}, err
	}
	if chunks := m.chunks[campaign]; chunk < len(chunks) {
		return chunks[chunk], nil
	}
	return segment.Engaged{}, nil
}

// mailing is setup with people p0, p1, … on the list weekly, and the campaign spring, which each second got
// and each sixth opened. The campaign summer is a draft.
func mailing(t testing.TB, people int) (*bench, *mailed) {
	b := setup(t)
	m := &mailed{chunks: map[string][]segment.Engaged{"spring": {{Got: every(2), Opened: every(6)}},
		"summer": nil}}
	b.Campaigns = func() audience.Campaigns { return m }
	b.list(t, "weekly", "single")
	var file strings.Builder
	file.WriteString("email\n")
	for i := range people {
		fmt.Fprintf(&file, "p%d@example.net\n", i)
	}
	done, err := b.Imports.Run(t.Context(), "", strings.NewReader(file.String()), api.SubscriberImportOptions{
		ListID: []string{"weekly"}, State: "subscribed", Consent: "fair"})
	if err != nil || done.Added != people {
		t.Fatalf("%+v, %v", done, err)
	}
	return b, m
}

func (b *bench) segment(t testing.TB, id, rule string) api.SegmentInfo {
	t.Helper()
	info, err := b.Segments.Create(t.Context(), "", api.Segment{Segment: id, Name: id,
		Rule: json.RawMessage(rule)})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

const unopened = `{"and":[{"campaign":"spring","did":"got"},{"not":{"campaign":"spring","did":"opened"}}]}`

// TestASegmentSelectsByCampaigns counts, lists, exports, explains and chooses by what people did with a
// campaign, and reads that once for a chunk of people.
func TestASegmentSelectsByCampaigns(t *testing.T) {
	t.Parallel()
	const people = 600
	b, m := mailing(t, people)
	info := b.segment(t, "unopened", unopened)
	if info.Sentence != "got campaign spring, and not (opened campaign spring)" || len(info.Warnings) != 0 {
		t.Errorf("%+v", info)
	}
	c := b.counted(t, "unopened")
	if c.State != "done" || c.Count != people/2-people/6 || m.reads != 1 {
		t.Errorf("%+v, read %d times", c, m.reads)
	}
	page, err := b.Page(t.Context(), "", api.SubscriberQuery{Segment: "unopened",
		CursorQuery: api.CursorQuery{PageSize: 2}})
	if err != nil || len(page.Subscribers) != 2 || page.Subscribers[1].Email != "p4@example.net" {
		t.Errorf("%+v, %v", page, err)
	}
	page, err = b.Page(t.Context(), "", api.SubscriberQuery{Segment: "unopened", Search: "p6@example.net"})
	if err != nil || len(page.Subscribers) != 0 {
		t.Errorf("who opened it: %+v, %v", page, err)
	}
	why, err := b.Segments.Explain(t.Context(), "", "unopened", "p6@example.net")
	want := api.SegmentExplanation{Terms: []api.SegmentTerm{
		{Text: "got campaign spring", Value: "got, opened", Holds: true},
		{Text: "opened campaign spring", Value: "got, opened", Holds: true}}}
	if diff := cmp.Diff(want, why); diff != "" || err != nil {
		t.Error(diff, err)
	}
	b.segment(t, "opened", `{"campaign":"spring","did":"opened"}`)
	choice, err := b.Choose(t.Context(), audience.Selection{Account: "default", Lists: []string{"weekly"},
		Segments: []string{"unopened", "opened"}, ExcludeSegments: []string{"opened"}})
	if err != nil || !cmp.Equal(choice.Campaigns(), []string{"spring"}) {
		t.Fatal(choice.Campaigns(), err)
	}
	m.reads = 0
	found, next, err := b.People(t.Context(), choice, 0, people, 1000)
	if err != nil || next != people || len(found) != c.Count || found[0].Ordinal != 2 || m.reads != 1 {
		t.Errorf("%d people, next %d, read %d times, %v", len(found), next, m.reads, err)
	}
	m.chunks["spring"][0].Opened = every(1)
	if found, _, err = b.People(t.Context(), choice, 0, people, 1000); err != nil || len(found) != 0 {
		t.Errorf("after all opened it: %d people, %v", len(found), err)
	}
}

// TestAnExportOfASegmentHadEverybody: an export with a segment has those whom the segment selects only.
func TestAnExportOfASegmentHadEverybody(t *testing.T) {
	t.Parallel()
	b, _ := mailing(t, 60)
	b.segment(t, "opened", `{"campaign":"spring","did":"opened"}`)
	var file strings.Builder
	err := b.Export(t.Context(), "", api.SubscriberExportQuery{SubscriberQuery: api.SubscriberQuery{
		Segment: "opened"}}, &file)
	rows, wrong := csv.NewReader(strings.NewReader(file.String())).ReadAll()
	if err != nil || wrong != nil || len(rows) != 1+10 || rows[2][1] != "p6@example.net" {
		t.Errorf("%v, %v, %v", rows, err, wrong)
	}
}

// TestPeopleOfLaterChunksAreJudgedByTheirs: what people did comes from their own chunk.
func TestPeopleOfLaterChunksAreJudgedByTheirs(t *testing.T) {
	t.Parallel()
	const chunk, people = 64_000, 64_100
	b, m := mailing(t, people)
	m.chunks["spring"] = []segment.Engaged{{}, {Clicked: every(50)}}
	b.segment(t, "clicked", `{"campaign":"spring","did":"clicked"}`)
	c := b.counted(t, "clicked")
	if c.Done != people || c.Count != 2 || m.reads != 2 || c.Sample[1].Email != "p64050@example.net" {
		t.Errorf("%+v, read %d times", c, m.reads)
	}
	choice, err := b.Choose(t.Context(), audience.Selection{Account: "default", Lists: []string{"weekly"},
		Segments: []string{"clicked"}})
	if err != nil {
		t.Fatal(err)
	}
	found, next, err := b.People(t.Context(), choice, chunk, people, 1000)
	if err != nil || next != people || len(found) != 2 || found[1].Ordinal != chunk+50 {
		t.Errorf("%+v, next %d, %v", found, next, err)
	}
}

// TestSegmentsNameCampaignsOfTheirAccount: others are refused with their field. For a campaign that was
// deleted anyway there is a warning, and it selects no one.
func TestSegmentsNameCampaignsOfTheirAccount(t *testing.T) {
	t.Parallel()
	b, m := mailing(t, 6)
	ctx := t.Context()
	refused := func(err error, keys ...string) {
		t.Helper()
		f, _ := err.(*fault.Error)
		var got []string
		if f != nil && f.Kind == fault.Invalid {
			for _, field := range f.Fields {
				got = append(got, field.Key)
			}
		}
		if !cmp.Equal(got, keys) {
			t.Errorf("%v, want faults of %v", err, keys)
		}
	}
	_, err := b.Segments.Create(ctx, "", api.Segment{Segment: "s", Name: "S", Rule: []byte(
		`{"or":[{"campaign":"spring","did":"got"},{"not":{"campaign":"gone","did":"got"}},
			{"campaign":"Spring","did":"got"}]}`)})
	refused(err, "rule.or[1].not.campaign", "rule.or[2].campaign")
	_, err = b.Segments.Create(ctx, "shop", api.Segment{Segment: "s", Name: "S",
		Rule: []byte(`{"campaign":"spring","did":"got"}`)})
	refused(err, "rule.campaign")
	b.segment(t, "s", `{"tag":"x"}`)
	_, err = b.Segments.Update(ctx, "", "s", api.SegmentPatch{Rule: []byte(`{"campaign":"gone","did":"got"}`)})
	refused(err, "rule.campaign")
	info, err := b.Segments.Update(ctx, "", "s", api.SegmentPatch{
		Rule: []byte(`{"not":{"campaign":"summer","did":"got"}}`)})
	if err != nil || !cmp.Equal(info.Warnings, []string{"campaign summer was not sent yet"}) {
		t.Errorf("%+v, %v", info, err)
	}
	b.segment(t, "other", unopened)
	for campaign, want := range map[string][]string{"spring": {"other"}, "summer": {"s"}, "gone": nil} {
		if ids, err := b.Segments.Naming(ctx, "default", campaign); err != nil || !cmp.Equal(ids, want) {
			t.Errorf("%s is named by %v, %v", campaign, ids, err)
		}
	}
	if ids, err := b.Segments.Naming(ctx, "shop", "spring"); err != nil || len(ids) != 0 {
		t.Errorf("of another account: %v, %v", ids, err)
	}

	delete(m.chunks, "summer")
	info, err = b.Segments.Get(ctx, "", "s")
	if err != nil || !cmp.Equal(info.Warnings, []string{"there is no campaign summer"}) {
		t.Errorf("%+v, %v", info, err)
	}
	if c := b.counted(t, "s"); c.Count != 6 {
		t.Errorf("nobody got a campaign that is gone: %+v", c)
	}
	choice, err := b.Choose(ctx, audience.Selection{Account: "default", Lists: []string{"weekly"},
		Segments: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	if people, _, err := b.People(ctx, choice, 0, 6, 10); !fault.Is(err, fault.NotFound) {
		t.Errorf("%d people by a campaign that is gone, %v", len(people), err)
	}
}
