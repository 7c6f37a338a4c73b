package newsletter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// tried is a campaign with variants whose first run began.
func tried(share float64, runs int, winner string, variants ...string) *stored {
	s := &stored{Number: 7, Campaign: api.Campaign{Test: &api.CampaignTrial{Share: share}}}
	for _, v := range variants {
		s.Variants = append(s.Variants, api.CampaignVariant{Variant: v})
	}
	s.Runs = make([]sending, runs)
	for i := range s.Runs {
		s.Runs[i].Winner = winner
	}
	return s
}

// TestPeopleAreDrawnEvenly: the share of the people gets the variants in equal parts, and the others wait.
// Everybody has a variant once the winner is known, and the test's people keep theirs.
func TestPeopleAreDrawnEvenly(t *testing.T) {
	t.Parallel()
	const people = 120_000
	for _, c := range []struct {
		name   string
		s      *stored
		run    int
		shares map[string]float64
	}{
		{"in the test", tried(0.3, 1, "", "a", "b", "c"), 1, map[string]float64{"a": .1, "b": .1, "c": .1, "": .7}},
		{"afterwards", tried(0.3, 1, "b", "a", "b", "c"), 1, map[string]float64{"a": .1, "b": .8, "c": .1}},
		{"nobody waits", tried(1, 1, "", "a", "b"), 1, map[string]float64{"a": .5, "b": .5}},
		{"sent again", tried(0.3, 2, "b", "a", "b"), 2, map[string]float64{"b": 1}},
		{"sent again without a winner", tried(0.3, 2, "", "a", "b"), 2, map[string]float64{"a": .5, "b": .5}},
		{"without variants", tried(0.3, 1, ""), 1, map[string]float64{"": 1}},
	} {
		got := map[string]int{}
		for ordinal := range uint32(people) {
			got[c.s.nameOf(c.run, ordinal)]++
		}
		for name, n := range got {
			if share := float64(n) / people; share < c.shares[name]-.01 || share > c.shares[name]+.01 {
				t.Errorf("%s: %.3f of the people get %q, want %.3f", c.name, share, name, c.shares[name])
			}
		}
		if len(got) != len(c.shares) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	before, after := tried(0.3, 1, "", "a", "b"), tried(0.3, 1, "a", "a", "b")
	for ordinal := range uint32(1000) {
		if had := before.nameOf(1, ordinal); had != "" && after.nameOf(1, ordinal) != had {
			t.Fatalf("person %d had variant %s", ordinal, had)
		}
	}
}

func TestVariantsReplaceWhatTheyHave(t *testing.T) {
	t.Parallel()
	in := api.Campaign{CampaignContent: api.CampaignContent{Subject: "S", PreviewText: "P", Template: "t",
		From: &api.Address{Address: "a@example.com"}}, Variants: []api.CampaignVariant{{Variant: "a", Subject: "A"},
		{Variant: "b", HTML: "<p>", From: &api.Address{Address: "b@example.com"}}}}
	a, b := as(in, 0).CampaignContent, as(in, 1).CampaignContent
	want := in.CampaignContent
	if want.Subject = "A"; !cmp.Equal(want, a) {
		t.Error(cmp.Diff(want, a))
	}
	want = in.CampaignContent
	want.From, want.Template, want.HTML = &api.Address{Address: "b@example.com"}, "", "<p>"
	if !cmp.Equal(want, b) {
		t.Error(cmp.Diff(want, b))
	}
	if _, err := chosen(in, "c"); err == nil {
		t.Error("there is no variant c")
	}
}

func TestTheBestVariant(t *testing.T) {
	t.Parallel()
	outcome := func(name string, sent, opened, clicked int) api.CampaignOutcome {
		return api.CampaignOutcome{Variant: name, States: api.CampaignStates{Sent: sent}, Opened: opened,
			Clicked: clicked}
	}
	for _, c := range []struct {
		metric string
		all    []api.CampaignOutcome
		want   string
	}{
		{byClicks, []api.CampaignOutcome{outcome("a", 100, 90, 3), outcome("b", 50, 10, 2)}, "b"},
		// fewer people
		{byOpens, []api.CampaignOutcome{outcome("a", 100, 90, 3), outcome("b", 50, 10, 2)}, "a"},
		{byClicks, []api.CampaignOutcome{outcome("a", 0, 0, 0), outcome("b", 0, 0, 0)}, "a"},
	} {
		if got := best(c.all, c.metric); got != c.want {
			t.Errorf("by %s of %+v: %s, want %s", c.metric, c.all, got, c.want)
		}
	}
}

// TestATestIsOver: only once none of its people remain, whatever chunks have no one who waits.
func TestATestIsOver(t *testing.T) {
	t.Parallel()
	scanned := sendlog.Chunk{Again: forWinner, Counts: sendlog.Sum(nil)}
	under := scanned
	under.Counts.Taken = 1
	for _, c := range []struct {
		name   string
		chunks []sendlog.Chunk
		over   bool
	}{
		{"all scanned", []sendlog.Chunk{scanned, {Done: true}}, true},
		{"a chunk is not scanned", []sendlog.Chunk{scanned, {}}, false},
		{"a window opens later", []sendlog.Chunk{{Again: time.Now()}}, false},
		{"a batch is out", []sendlog.Chunk{{Again: forWinner, Batches: 1}}, false},
		{"a mail is under way", []sendlog.Chunk{under}, false},
	} {
		if got := tested(c.chunks); got != c.over {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestFaultsOfVariants(t *testing.T) {
	t.Parallel()
	v := func(names ...string) (all []api.CampaignVariant) {
		for _, name := range names {
			all = append(all, api.CampaignVariant{Variant: name})
		}
		return all
	}
	for _, c := range []struct {
		in   api.Campaign
		want []string
	}{
		{api.Campaign{Variants: v("a", "b"), Test: &api.CampaignTrial{Share: .01, Metric: "opens", Wait: "1s"}},
			nil},
		{api.Campaign{Variants: v("a")}, []string{"variants"}},
		{api.Campaign{Variants: v("1", "2", "3", "4", "5", "6", "7", "8", "9")}, []string{"variants"}},
		{api.Campaign{Variants: v("a", "a")}, []string{"variants[1].variant"}},
		{api.Campaign{Variants: v("a", "no spaces")}, []string{"variants[1].variant"}},
		{api.Campaign{Variants: []api.CampaignVariant{{Variant: "a", Template: "t", Text: "x"},
			{Variant: "b", From: &api.Address{Address: "nobody"}}}}, []string{"variants[0].template",
			"variants[1].from.address"}},
		{api.Campaign{Test: &api.CampaignTrial{Share: .001, Metric: "luck", Wait: "169h", Minimum: -1}},
			[]string{"test", "test.share", "test.metric", "test.wait", "test.minimum"}},
	} {
		var f faults
		f.variants(c.in)
		var got []string
		for _, one := range f.Fields {
			got = append(got, one.Key)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.in, diff)
		}
	}
}

// TestOutcomesAreThoseOfTheGroups: a person counts for the variant and, if drawn for the test, for that too.
func TestOutcomesAreThoseOfTheGroups(t *testing.T) {
	t.Parallel()
	one := &campaign{stored: *tried(0.3, 2, "b", "a", "b")}
	sum, want := sendlog.Sum(nil), map[string]int{}
	sum.Groups = map[sendlog.Group]sendlog.Counts{}
	tests := map[string]int{}
	for ordinal := range uint32(2000) {
		g := one.groupOf(1, ordinal)
		of, ok := sum.Groups[g]
		if !ok {
			of = sendlog.Sum(nil)
		}
		of.Taken++
		of.States[sendlog.Sent]++
		of.Fields["opened"]++
		sum.Groups[g] = of
		want[one.nameOf(1, ordinal)]++
		if lot(one.Number, ordinal) < 0.3 {
			tests[one.nameOf(1, ordinal)]++
		}
	}
	for _, o := range outcomes(one, sum) {
		if o.States.Sent != want[o.Variant] || o.Opened != want[o.Variant] || o.Test != tests[o.Variant] {
			t.Errorf("%+v, want %d sent, %d in the test", o, want[o.Variant], tests[o.Variant])
		}
	}
	if one.groupOf(2, 1) != mostVariants+1 {
		t.Error("a later run has no test")
	}
}
