package ui

import (
	"net/http"
	"testing"

	"github.com/postroom/postroom/api"
)

func TestWhyPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.barred.Put(t.Context(), "", []api.NewSuppression{{Email: "o'neil+x@example.net",
		Response: evilText}})
	w.must(err)
	id := w.submit(api.SubmitRequest{To: api.Addresses{{Address: "o'neil+x@example.net"}}, Subject: evilText})
	b := w.operator()
	found := b.get("/search?q=O%27Neil%2Bx@example.net")
	if found.status != http.StatusSeeOther || found.to() != "/to/O%27Neil+x@example.net" {
		t.Fatalf("the search leads to %d %s", found.status, found.to())
	}
	p := b.get(found.to())
	p.isSafe(t, "/to/{address}")
	p.eachFieldHasALabel(t, "/to/{address}")
	p.has(t, "<h1>o'neil+x@example.net</h1>", `<caption class="hidden">The newest messages to the address`,
		"/messages/"+id, "all mail to o'neil+x@example.net is stopped",
		`<code>postroom suppressions delete 'o'\''neil+x@example.net'</code>`,
		`href="/suppressions?q=o%27neil%2Bx%40example.net"`)
	b.get("/to/o'neil+x@example.net?message="+id).has(t, "Did this message arrive?")
	b.get("/to/never@example.net").has(t, "did not arrive", "Postroom has no message to never@example.net",
		"No messages to this address.")
	if got := b.get("/to/nobody"); got.status != http.StatusBadRequest {
		t.Errorf("no address: %d", got.status)
	}
	if got := b.get("/search?q=to:never@example.net"); got.status != http.StatusOK {
		t.Errorf("a query with a field: %d", got.status)
	}
}
