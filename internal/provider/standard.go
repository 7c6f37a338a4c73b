package provider

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"
)

const maxSignatures = 20 // in one header; there is one for each secret that the sender has at a time

// standard is a key of Standard Webhooks 1.0: signatures over id.timestamp.body, v1 by HMAC-SHA256 or v1a by
// ed25519.
type standard struct {
	secret []byte            // for v1
	public ed25519.PublicKey // for v1a
}

// standardKey reads whsec_ or whpk_ and base64. The specification wants secrets of 24 to 64 bytes; shorter
// ones are accepted because Svix makes some of 18 bytes.
func standardKey(secret string) (key, error) {
	if encoded, ok := strings.CutPrefix(secret, "whpk_"); ok {
		public, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(public) != ed25519.PublicKeySize {
			return nil, errors.New("must be the base64 of 32 bytes after whpk_")
		}
		return standard{public: public}, nil
	}
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		return nil, errors.New("must begin with whsec_ or whpk_")
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) < 16 || len(raw) > 128 {
		return nil, errors.New("must be the base64 of 16 to 128 bytes after whsec_")
	}
	return standard{secret: raw}, nil
}

// genericKey reads a key of Standard Webhooks, known by its prefix, or else a shared secret.
func genericKey(secret string) (key, error) {
	for _, prefix := range []string{"whsec_", "whpk_", "whsk_"} {
		if strings.HasPrefix(secret, prefix) {
			return standardKey(secret)
		}
	}
	return sharedKey(secret)
}

func (s standard) verify(_ context.Context, v *Verifier, r *incoming, now time.Time) error {
	id, timestamp := standardHeader(r.Header, "id"), standardHeader(r.Header, "timestamp")
	given := standardHeader(r.Header, "signature")
	if id == "" || timestamp == "" || given == "" {
		return missing("webhook-id, webhook-timestamp and webhook-signature")
	}
	at, ok := signedSeconds(timestamp)
	if !ok {
		return missing("webhook-timestamp")
	}
	signed := append([]byte(id+"."+timestamp+"."), r.Body...)
	fits := false
	for i, one := range strings.Fields(given) {
		if i == maxSignatures {
			break
		}
		fits = s.fits(one, signed) || fits
	}
	if !fits {
		return mismatch()
	}
	return v.fresh(at, now)
}

func (s standard) fits(one string, signed []byte) bool {
	version, encoded, _ := strings.Cut(one, ",")
	given, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	switch {
	case version == "v1" && s.secret != nil:
		mac := hmac.New(sha256.New, s.secret)
		mac.Write(signed)
		return hmac.Equal(given, mac.Sum(nil))
	case version == "v1a" && s.public != nil:
		return len(given) == ed25519.SignatureSize && ed25519.Verify(s.public, signed, given)
	}
	return false
}

// standardHeader reads a header by its name in the specification, or by the older name of Svix and Resend.
func standardHeader(h http.Header, name string) string {
	return cmp.Or(h.Get("webhook-"+name), h.Get("svix-"+name))
}

// headerID returns the id of the request as the id of its first event. Further events have none.
func (r *reading) headerID(q Request) string {
	if r.index > 0 {
		return ""
	}
	return standardHeader(q.Header, "id")
}
