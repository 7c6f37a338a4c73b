package server

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// erasure begins an erasure in the account acme.
func (p *parts) erasure(t *testing.T) []string {
	t.Helper()
	made, err := p.Erasures.Start(t.Context(), "acme", api.ErasureRequest{Email: "gone@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"{id}", made.ID}
}

func TestErasuresOverTheAPI(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.account(t, "acme")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.parts.Erasures.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	c := w.as(boundToken)
	made, err := api.ErasePerson.Do(ctx, c, api.ErasureRequest{Email: "Quux@example.org"})
	if err != nil || made.Account != "acme" || made.ID == "" || made.Person == "" || len(made.Remaining) == 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	for made.State != api.ErasureDone { // the deadline of the test ends it
		if made, err = api.GetErasure.Do(ctx, c, made.ID); err != nil {
			t.Fatal(err)
		}
	}
	data, err := api.ExportPerson.Do(ctx, c, api.ErasureRequest{Email: "Quux@example.org"})
	if err != nil || data.Email != "quux@example.org" || data.Account != "acme" {
		t.Errorf("%+v, %v", data, err)
	}
	for _, body := range []string{`{}`, `{"email":"nobody"}`, `{"email":"a@b.test","x":1}`} {
		if got := w.do(t, "POST", "/v1/people/erase", adminToken, body); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	entries, err := w.parts.Audit.List(ctx, api.AuditQuery{PageSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range entries.Entries {
		if e.Object != nil && e.Object.Kind == "erasure" && e.Object.ID == made.ID {
			found++
		}
		if strings.Contains(marshal(t, e), "quux") {
			t.Errorf("the audit log names the person: %+v", e)
		}
	}
	if found != 1 {
		t.Errorf("%d entries about the erasure", found)
	}
}
