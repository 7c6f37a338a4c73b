package webhooks

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func TestStandardSignatureVector(t *testing.T) {
	raw, err := os.ReadFile("testdata/standard_webhooks_v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Secret    string `json:"secret"`
		ID        string `json:"msg_id"`
		Timestamp int64  `json:"timestamp"`
		Payload   string `json:"payload"`
		Signature string `json:"signature"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	key, err := parseSecret(v.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if got := standardSignature(v.ID, time.Unix(v.Timestamp, 0), []byte(v.Payload),
		[][]byte{key}); got != v.Signature {
		t.Errorf("signature %s, want %s", got, v.Signature)
	}
}

func TestServiceSignature(t *testing.T) {
	// echo -n '{"a":1}' | openssl dgst -sha256 -hmac secret -binary | basenc --base64url
	if got, want := serviceSignature([]byte(`{"a":1}`),
		"secret"), "qp4uNXX11wmLbKzNeQiIw21f22M0KnO62i1qUXR6hJQ"; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestRotationSignsWithBothForADay(t *testing.T) {
	now := time.Now()
	old, young := newSecret(), newSecret()
	s := secrets{Secret: young, Older: []olderSecret{{Secret: old, Until: now.Add(rotation)}}}
	verifies := func(secret string, at time.Time) bool {
		body := []byte(`{"event":"messageSent"}`)
		h := http.Header{}
		h.Set("webhook-id", "ev_ep")
		h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
		h.Set("webhook-signature", standardSignature("ev_ep", at, body, s.keys(at)))
		wh, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		return wh.VerifyIgnoringTimestamp(body, h) == nil
	}
	if !verifies(young, now) || !verifies(old, now.Add(rotation-time.Second)) {
		t.Error("during rotation both secrets must verify")
	}
	if verifies(old, now.Add(rotation)) {
		t.Error("after a day the old secret must not verify")
	}
	if !verifies(young, now.Add(2*rotation)) {
		t.Error("the new secret must go on verifying")
	}
}

func TestParseSecret(t *testing.T) {
	for _, row := range []struct{ name, secret, want string }{
		{"ours", newSecret(), ""},
		{"the vector's", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", ""},
		{"empty", "", "must begin"},
		{"no prefix", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "must begin"},
		{"misspelled prefix", "hwsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "must begin"},
		{"asymmetric", "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==", "must begin"},
		{"not base64", "whsec_%", "base64"},
		{"too short", "whsec_d3JvbmdsZW5ndGg=", "24 to 64"},
		{"too long", "whsec_" + strings.Repeat("AAAA", 22), "24 to 64"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := parseSecret(row.secret)
			if row.want == "" && err != nil || row.want != "" &&
				(err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}
