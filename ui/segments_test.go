package ui

import (
	"net/url"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
)

// TestThePageOfACampaignOffersSegments of its people. The form of a new segment has what the link says.
func TestThePageOfACampaignOffersSegments(t *testing.T) {
	t.Parallel()
	offered := offeredSegments("c1")
	if rule := offered[2].Rule; rule !=
		`{"and":[{"campaign":"c1","did":"got"},{"not":{"campaign":"c1","did":"opened"}}]}` {
		t.Error(rule)
	}
	for run, want := range []int{0, len(offered)} {
		if got := (campaignView{CampaignInfo: api.CampaignInfo{Run: run}}).Offered(); len(got) != want {
			t.Errorf("after %d runs: %+v", run, got)
		}
	}
	w := setup(t)
	b := w.operator()
	at := "/segments?" + url.Values{"name": {"<i>Got c1"}, "rule": {offered[0].Rule + "<b>"}}.Encode()
	p := b.get(at)
	p.isSafe(t, at)
	p.eachFieldHasALabel(t, at)
	p.has(t, `<details class="card" open>`, `value="<i>Got c1"`, offered[0].Rule+"<b>")
	b.post("/segments", url.Values{"name": {"G"}, "rule": {offered[0].Rule}}).has(t, `class="flash bad"`,
		`id="rule-wrong">is "c1", but account default has no such campaign`)
}

// TestARefusedSegmentKeepsItsInput, and says what is wrong next to the field.
func TestARefusedSegmentKeepsItsInput(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.submitForm("/segments", url.Values{"name": {"Taken"}, "segment": {"taken"},
		"rule": {`{"tag":"a"}`}}).has(t,
		"created.")
	for name, tc := range map[string]struct{ id, rule, field string }{
		"a rule that is not JSON": {"mine", `{"tag":`, "rule"},
		"a rule without a term":   {"mine", `{}`, "rule"},
		"an unknown member":       {"mine", `{"tag":"a","colour":"red"}`, "rule"},
		"an unknown campaign":     {"mine", `{"campaign":"none","did":"got"}`, "rule"},
		"no rule":                 {"mine", "", "rule"},
		"an id with a blank":      {"m y", `{"tag":"a"}`, "segment"},
		"a taken id":              {"taken", `{"tag":"a"}`, "segment"},
		"an unknown account":      {"mine", `{"tag":"a"}`, "account"},
	} {
		account := "default"
		if tc.field == "account" {
			account = "nobody"
		}
		for _, at := range []string{"/segments", "/segments/taken"} {
			f := url.Values{"name": {"Ann & <Bob>"}, "rule": {tc.rule}}
			fields := []string{`value="Ann & <Bob>"`, ">" + tc.rule + "</textarea>"}
			if at == "/segments" {
				f.Set("segment", tc.id)
				f.Set("account", account)
				fields = append(fields, `name="segment" value="`+tc.id+`"`, `name="account" value="`+account+`"`)
			} else if f.Set("version", "1"); tc.field != "rule" {
				continue
			}
			p := b.post(at, f)
			p.isSafe(t, at)
			p.eachFieldHasALabel(t, at)
			if p.status < 400 || p.status > 499 {
				t.Errorf("%s: %s answers %d", name, at, p.status)
			}
			p.has(t, append(fields, `<p class="wrong" id="`+tc.field+`-wrong">`, `class="flash bad"`)...)
		}
	}
}

// TestSegmentsOnThePages makes, counts, explains, changes and deletes a segment.
func TestSegmentsOnThePages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.subscriber("default", "ann@example.com")
	b := w.operator()
	b.get("/segments").has(t, "No segments yet", "Create a segment")
	b.submitForm("/segments", url.Values{"name": {"<i>Beta</i>"}, "segment": {"beta"},
		"rule": {`{"not":{"tag":"<b>"}}`}}).has(t, "created.", "not (tag “<b>”)")
	p := b.get("/segments")
	p.isSafe(t, "/segments")
	p.has(t, "1 segment", `href="/segments/beta"`)
	at := "/segments/beta"
	b.submitForm(at+"/count", nil).has(t, "Counting subscribers")
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := w.audience.Segments.Count(t.Context(), "", "beta")
		w.must(err)
		if c.State == "done" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still counting: %+v", c)
		}
	}
	p = b.get(at + "?subscriber=ann@example.com")
	p.isSafe(t, at)
	p.eachFieldHasALabel(t, at)
	p.has(t, "<strong>1</strong> of 1 subscribers", "in the segment", "ann@example.com")
	b.get(at+"?subscriber=none@example.com").has(t, "has no subscriber none@example.com")
	b.submitForm(at, url.Values{"version": {"1"}, "name": {"Beta"}, "rule": {`{"tag":"beta"}`}}).has(t,
		"Segment saved.",
		"before the rule last changed")
	b.post(at, url.Values{"version": {"1"}, "name": {"Beta"}, "rule": {`{"tag":"beta"}`}}).has(t,
		"is now at version 2, not 1")
	b.get("/audience?account=default&segment=beta").has(t, "No subscriber matches.")
	b.submitForm(at+"/delete", nil).has(t, "Segment beta deleted.")
	entries, err := w.audit.List(t.Context(), api.AuditQuery{Kind: "segment", ID: "beta", PageSize: 100})
	w.must(err)
	if len(entries.Entries) < 3 {
		t.Errorf("the audit log has %d entries", len(entries.Entries))
	}
}
