package webhooks

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
)

func TestPatchChangesOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rc := answering(t, 410)
	ep := b.endpoint(rc.URL, func(r *api.EndpointRequest) {
		r.Events, r.Accounts, r.Headers = []string{"messageSent"}, []string{"snd"}, map[string]string{"X-Key": "k"}
		r.Description, r.RateLimit = "orders", 5
	})
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	if got, err := b.Endpoint(t.Context(), ep.ID); err != nil || got.Enabled {
		t.Fatalf("after a 410: %+v, %v", got, err)
	}
	on, none := true, 0
	got, err := b.Patch(t.Context(), ep.ID, api.EndpointPatch{Enabled: &on, RateLimit: &none})
	if err != nil || !got.Enabled || got.DisabledReason != "" || got.RateLimit != 0 ||
		!slices.Equal(got.Events, []string{"messageSent"}) || !slices.Equal(got.Accounts, []string{"snd"}) ||
		got.Description != "orders" || got.Headers["X-Key"] != masked || got.OldSecretUntil != nil {
		t.Errorf("switched on again: %+v, %v", got, err)
	}
	got, err = b.Patch(t.Context(), ep.ID,
		api.EndpointPatch{Events: new([]string{"*"}), Accounts: new([]string{})})
	if err != nil || !slices.Equal(got.Events, []string{"*"}) || len(got.Accounts) != 0 {
		t.Errorf("all events: %+v, %v", got, err)
	}
	rc.answer = nil
	b.emit("E2", event.MessageFailed, "other")
	b.fanOutAll()
	b.run(ep.ID, "E2")
	if last := rc.got()[len(rc.got())-1]; last.header.Get("X-Key") != "k" {
		t.Errorf("the header is lost: %v", last.header)
	}
	got, err = b.Patch(t.Context(), ep.ID, api.EndpointPatch{Headers: new(map[string]string{})})
	if err != nil || len(got.Headers) != 0 {
		t.Errorf("no headers: %+v, %v", got, err)
	}
}

func TestPatchNamesWrongFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 200).URL, func(r *api.EndpointRequest) {
		r.Headers = map[string]string{"X-Key": "k"}
	})
	for _, row := range []struct {
		patch api.EndpointPatch
		want  []string
	}{
		{api.EndpointPatch{URL: new("ftp://x"), Events: new([]string{"mail"})}, []string{"url", "events[0]"}},
		{api.EndpointPatch{URL: new("https://elsewhere.example.com/")}, []string{"secret", "headers.X-Key"}},
		{api.EndpointPatch{Secret: new("whsec_short")}, []string{"secret"}},
		{api.EndpointPatch{Headers: new(map[string]string{"Webhook-Id": "x"})}, []string{"headers.Webhook-Id"}},
		{api.EndpointPatch{RateLimit: new(-1)}, []string{"rateLimit"}},
	} {
		_, err := b.Patch(t.Context(), ep.ID, row.patch)
		var wrong *fault.Error
		var keys []string
		if errors.As(err, &wrong) {
			for _, f := range wrong.Fields {
				keys = append(keys, f.Key)
			}
		}
		if !slices.Equal(keys, row.want) {
			t.Errorf("%+v: %v, want the fields %v", row.patch, err, row.want)
		}
	}
	if _, err := b.Patch(t.Context(), "nowhere", api.EndpointPatch{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown endpoint: %v", err)
	}
}

func TestRotatedSecretSignsBesideTheOldOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rc := newReceiver(t, func(int, http.ResponseWriter, *http.Request) {})
	ep := b.endpoint(rc.URL)
	signatures := func(id string) []string {
		t.Helper()
		b.emit(id, event.MessageSent, "snd")
		b.fanOutAll()
		b.run(ep.ID, id)
		all := rc.got()
		return strings.Fields(all[len(all)-1].header.Get("Webhook-Signature"))
	}
	rotated, err := b.Rotate(t.Context(), ep.ID, api.SecretRotation{Overlap: new(3600)})
	if err != nil || rotated.Secret == ep.Secret || rotated.OldSecretUntil == nil ||
		rotated.OldSecretUntil.Sub(b.clock()).Round(time.Minute) != time.Hour {
		t.Fatalf("got %+v, %v", rotated, err)
	}
	shown, err := b.Endpoint(t.Context(), ep.ID)
	if err != nil || shown.OldSecretUntil == nil || !shown.OldSecretUntil.Equal(*rotated.OldSecretUntil) ||
		strings.Contains(shown.Secret, rotated.Secret) {
		t.Errorf("the endpoint tells %+v, %v", shown, err)
	}
	got := signatures("E1")
	last := rc.got()[0]
	if len(got) != 2 || !verified(t, rotated.Secret, last, got[:1]) || !verified(t, ep.Secret, last, got[1:]) {
		t.Errorf("signed by both: %q", got)
	}
	b.advance(time.Hour)
	if got := signatures("E2"); len(got) != 1 || !verified(t, rotated.Secret, rc.got()[1], got) {
		t.Errorf("after the overlap: %q", got)
	}
	if shown, err := b.Endpoint(t.Context(), ep.ID); err != nil || shown.OldSecretUntil != nil {
		t.Errorf("after the overlap the endpoint tells %v, %v", shown.OldSecretUntil, err)
	}
}

// verified reports whether a signature is by a secret.
func verified(t *testing.T, secret string, r received, signature []string) bool {
	t.Helper()
	key, err := parseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(int64(number(r.header.Get("Webhook-Timestamp"))), 0)
	return slices.Equal(signature,
		[]string{standardSignature(r.header.Get("Webhook-Id"), at, r.body, [][]byte{key})})
}

func TestRotationsInARowLockNobodyOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 200).URL)
	for i := range mostOlder {
		if _, err := b.Rotate(t.Context(), ep.ID, api.SecretRotation{}); err != nil {
			t.Fatalf("rotation %d: %v", i+1, err)
		}
	}
	_, err := b.Rotate(t.Context(), ep.ID, api.SecretRotation{})
	if fault.CodeOf(err) != "TooManySecrets" {
		t.Errorf("one too many: %v", err)
	}
	if _, err := b.Patch(t.Context(), ep.ID, api.EndpointPatch{Secret: new(newSecret())}); fault.CodeOf(
		err) != "TooManySecrets" {
		t.Errorf("one too many by a patch: %v", err)
	}
	got, err := b.Rotate(t.Context(), ep.ID, api.SecretRotation{Overlap: new(0)})
	if err != nil || got.OldSecretUntil != nil {
		t.Errorf("with no overlap: %+v, %v", got, err)
	}
	for key, r := range map[string]api.SecretRotation{"overlap": {Overlap: new(2592001)},
		"secret": {Secret: "mine"}} {
		var wrong *fault.Error
		if _, err := b.Rotate(t.Context(), ep.ID, r); !errors.As(err, &wrong) || wrong.Fields[0].Key != key {
			t.Errorf("a wrong %s: %v", key, err)
		}
	}
	if _, err := b.Rotate(t.Context(), ep.ID, api.SecretRotation{Secret: got.Secret}); err == nil {
		t.Error("the present secret was taken for a new one")
	}
	if strings.Contains(b.log.String(), got.Secret) {
		t.Error("the log has the secret")
	}
}
