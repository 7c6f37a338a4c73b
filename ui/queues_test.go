package ui

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/postroom/postroom/api"
)

// TestQueuesPage: each queue with its counts, which lead to lists of as many, and its switch.
func TestQueuesPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.later(api.SubmitRequest{Lane: api.Bulk})
	w.later(api.SubmitRequest{})
	w.submit(api.SubmitRequest{})
	b := w.operator()
	p := b.get("/queues")
	p.isSafe(t, "/queues")
	p.eachFieldHasALabel(t, "/queues")
	p.has(t, "submit", "bulk", "notify", "documents", "digests", `<a href="/outbox?state=scheduled">2</a>`,
		`<a href="/outbox?lane=bulk&state=scheduled">1</a>`, `<a href="/outbox?state=waiting">1</a>`,
		`href="/admin/queues"`, `aria-label="Pause documents…"`)
	b.get("/outbox?lane=bulk&state=scheduled").has(t, "<strong>1 message</strong>")
	back := url.Values{"back": {"/queues"}}
	for _, queue := range []string{"submit", "notify", "documents", "digests"} {
		b.submitForm("/queues/"+queue+"/pause", back).has(t, "paused", `aria-label="Resume `+queue+`"`)
		b.submitForm("/queues/"+queue+"/resume", back).has(t, `aria-label="Pause `+queue+`…"`)
	}
	if p := b.post("/queues/none/pause", back); p.status != http.StatusNotFound {
		t.Errorf("a queue that is not there: %d", p.status)
	}
	if p := w.person("vera", api.RoleViewer).get("/queues?part=rows"); p.status != http.StatusOK {
		t.Errorf("a viewer sees no queues: %d", p.status)
	}
}
