package relays

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/api"
)

func TestReseal(t *testing.T) {
	before := setup(t)
	open := gateway("open")
	open.User, open.Pass = "", ""
	for _, g := range []api.Gateway{gateway("a"), oauthGateway("b"), open} {
		before.create(t, g)
	}
	before.Outcome(t.Context(), "a", 1, nil)
	during := process(t, before.url, ringOf(t, "new", "secret"))
	during.create(t, gateway("c"))
	want := during.get(t, "a")
	if n, err := during.Reseal(t.Context()); n != 2 || err != nil {
		t.Errorf("%d, %v, want the two with secrets of before", n, err)
	}
	if n, err := during.Reseal(t.Context()); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	if got := during.get(t, "a"); got.State != want.State || got.Deliveries != 1 || !got.Updated.Equal(want.Updated) {
		t.Errorf("%+v, want %+v", got, want)
	}
	after := process(t, before.url, ringOf(t, "new"))
	if got := after.resolve(t, "a").Relay.Password; got != "correct horse" {
		t.Errorf("%q", got)
	}
	if r := after.resolve(t, "b"); r.OAuth.RefreshToken != "refresh battery" || r.Relay.Proxy != oauthGateway("b").Proxy {
		t.Error("a secret was lost")
	}
}

func TestResealGoesOnPastWhatDoesNotOpen(t *testing.T) {
	b := setup(t)
	b.create(t, gateway("a"))
	later := process(t, b.url, ringOf(t, "later"))
	later.create(t, gateway("b"))
	last := process(t, b.url, ringOf(t, "last", "later"))
	n, err := last.Reseal(t.Context())
	if n != 1 || err == nil || !strings.Contains(err.Error(), "gateway:a") || strings.Contains(err.Error(), "correct") {
		t.Errorf("%d, %v", n, err)
	}
}

func TestResealLosesNoEdit(t *testing.T) {
	b := setup(t)
	const gateways = 20
	for i := range gateways {
		b.create(t, gateway(fmt.Sprint("g", i)))
	}
	ring := ringOf(t, "new", "secret")
	one, two := process(t, b.url, ring), process(t, b.url, ring)
	var wg sync.WaitGroup
	for _, p := range []bundle{one, two} {
		wg.Go(func() {
			if _, err := p.Reseal(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		for i := range gateways {
			if _, err := one.Update(t.Context(), fmt.Sprint("g", i), api.GatewayPatch{Name: ptr("edited")}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if n, err := one.Reseal(t.Context()); err != nil {
		t.Errorf("%d, %v", n, err)
	}
	after := process(t, b.url, ringOf(t, "new"))
	for i := range gateways {
		id := fmt.Sprint("g", i)
		if g, r := after.get(t, id), after.resolve(t, id); g.Name != "edited" || r.Relay.Password != "correct horse" {
			t.Errorf("%s: %q", id, g.Name)
		}
	}
}
