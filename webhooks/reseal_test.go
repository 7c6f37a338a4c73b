package webhooks

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// secretsAre gives the process a ring of these secrets, the current one first.
func (b *bundle) secretsAre(secrets ...string) {
	b.t.Helper()
	var all [][]byte
	for _, s := range secrets {
		all = append(all, []byte(strings.Repeat(s, 32)))
	}
	ring, err := seal.New(all[0], all[1:]...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.ring, b.dir.ring = ring, ring
	b.dir.reload(b.t.Context())
}

func TestReseal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.secretsAre("o")
	first := b.endpoint("https://example.com/1", func(r *api.EndpointRequest) {
		r.Headers = map[string]string{"X-Key": "hunter2"}
	})
	b.endpoint("https://example.com/2")
	before, _, secrets, err := b.load(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}

	b.secretsAre("n", "o")
	fresh := b.endpoint("https://example.com/3")
	for _, want := range []int{2, 0} {
		if n, err := b.Reseal(t.Context()); n != want || err != nil {
			t.Errorf("resealed %d, %v; want %d", n, err, want)
		}
	}
	// One that was read before an edit is read again.
	if did, err := b.resealOne(t.Context(), first.ID, before); did || err != nil {
		t.Errorf("an endpoint that changed meanwhile: %v, %v", did, err)
	}

	b.secretsAre("n")
	_, _, after, err := b.load(t.Context(), first.ID)
	if err != nil || after.Secret != secrets.Secret || after.Headers["X-Key"] != "hunter2" {
		t.Errorf("secrets afterwards: %+v, %v", after, err)
	}
	if shown, err := b.Endpoint(t.Context(), first.ID); err != nil || !shown.Updated.Equal(first.Updated) {
		t.Errorf("shown as updated %v, before %v, %v", shown.Updated, first.Updated, err)
	}

	b.secretsAre("other")
	if n, err := b.Reseal(t.Context()); n != 0 || err == nil || !strings.Contains(err.Error(), fresh.ID) {
		t.Errorf("with another secret: resealed %d, %v", n, err)
	}
}

// TestResealDeletedMeanwhile brings nothing back.
func TestResealDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.secretsAre("o")
	e := b.endpoint("https://example.com/1")
	raw, _, _, err := b.load(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.secretsAre("n", "o")
	if _, err := b.Delete(t.Context(), e.ID); err != nil {
		t.Fatal(err)
	}
	if did, err := b.resealOne(t.Context(), e.ID, raw); did || err != nil {
		t.Errorf("got %v, %v", did, err)
	}
	if list, err := b.Endpoints(t.Context(), 0, 10); err != nil || list.Total != 0 {
		t.Errorf("%d endpoints, %v", list.Total, err)
	}
}

// TestSignedByBothSecretsDuringAChange: a receiver that knows only the older signing secret continues to
// work.
func TestSignedByBothSecretsDuringAChange(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, nil)
	src := &sources{targets: map[string][]Target{"*": {{ID: SettingsID, URL: rc.URL}}}}
	b := setupWith(t, src, func(o *Options) { o.OlderSecrets = []string{"the older one"} })
	b.emit("E1", event.MessageSent, "shop")
	b.fanOutAll()
	b.run(SettingsID, "E1")
	got := rc.got()[0]
	keys := [][]byte{[]byte(serviceSecret), []byte("the older one")}
	if want := standardSignature("E1_settings", stamp(t, got.header.Get("Webhook-Timestamp")), got.body,
		keys); got.header.Get("Webhook-Signature") != want {
		t.Errorf("signed %s, want %s", got.header.Get("Webhook-Signature"), want)
	}
}
