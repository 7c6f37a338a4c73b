package provider

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// TestPostalSignature: a body is Postal's by either of its signatures, and the better one counts if it is
// there.
func TestPostalSignature(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := base64.StdEncoding.EncodeToString(der)
	body := []byte(`{"event":"MessageSent"}`)
	sign := func(h crypto.Hash, body []byte) string {
		sum := h.New()
		sum.Write(body)
		signature, err := rsa.SignPKCS1v15(rand.Reader, private, h, sum.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(signature)
	}
	const old, better = "X-Postal-Signature", "X-Postal-Signature-256"
	for _, secret := range []string{public, "v=DKIM1; t=s; h=sha256; p=" + public + ";"} {
		v := newVerifier(t, Postal, Options{Secrets: []string{secret}})
		sha1, sha256 := sign(crypto.SHA1, body), sign(crypto.SHA256, body)
		for name, row := range map[string]struct {
			header map[string]string
			body   string
			code   string
		}{
			"both":             {map[string]string{old: sha1, better: sha256}, string(body), ""},
			"the old one":      {map[string]string{old: sha1}, string(body), ""},
			"another body":     {map[string]string{better: sha256}, string(body) + " ", codeMismatch},
			"the better wrong": {map[string]string{old: sha1, better: sha1}, string(body), codeMismatch},
			"none":             {nil, string(body), codeMissing},
			"no base64":        {map[string]string{old: "%"}, string(body), codeMissing},
			"that of another":  {map[string]string{old: sign(crypto.SHA1, []byte("x"))}, string(body), codeMismatch},
		} {
			r := Request{Header: http.Header{}, Body: []byte(row.body)}
			for field, value := range row.header {
				r.Header.Set(field, value)
			}
			if err := v.Verify(t.Context(), r, time.Now()); fault.CodeOf(err) != row.code {
				t.Errorf("%s: %v, want %q", name, err, row.code)
			}
		}
	}
	small, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: private.N, E: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "AAAA", "p=", base64.StdEncoding.EncodeToString(small[:100])} {
		if _, err := New(Postal, Options{Secrets: []string{bad}}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q as a key: %v", bad, err)
		}
	}
}

// TestMandrillSignature: Mandrill signs the configured address and the fields of the form.
func TestMandrillSignature(t *testing.T) {
	const key, address = "a-key-of-good-length", "https://mail.example.com/webhooks/provider/mandrill?a=1"
	form := url.Values{"mandrill_events": {`[{"event":"send"}]`}, "extra": {"1"}}
	sign := func(address string) string {
		mac := hmac.New(sha1.New, []byte(key))
		mac.Write([]byte(address + "extra1mandrill_events" + form.Get("mandrill_events")))
		return base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	v := newVerifier(t, Mandrill, Options{Secrets: []string{"another key of ours", key}})
	for name, row := range map[string]struct {
		signature, body string
		addresses       []string
		code            string
	}{
		"genuine":         {sign(address), form.Encode(), []string{"http://inner/", address}, ""},
		"another address": {sign(address), form.Encode(), []string{address + "/"}, codeMismatch},
		"no address":      {sign(address), form.Encode(), nil, codeMismatch},
		"another form":    {sign(address), form.Encode() + "&b=2", []string{address}, codeMismatch},
		"events twice": {sign(address), form.Encode() + "&mandrill_events=[]", []string{address},
			codeMissing},
		"no form":             {sign(address), "%", []string{address}, codeMissing},
		"no signature":        {"", form.Encode(), []string{address}, codeMissing},
		"a wrong signature":   {sign(""), form.Encode(), []string{address}, codeMismatch},
		"a form of no events": {sign(address), "extra=1", []string{address}, codeMissing},
	} {
		r := Request{Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"},
			"X-Mandrill-Signature": {row.signature}}, Body: []byte(row.body), Addresses: row.addresses}
		if err := v.Verify(t.Context(), r, time.Now()); fault.CodeOf(err) != row.code {
			t.Errorf("%s: %v, want %q", name, err, row.code)
		}
	}
	if _, err := New(Mandrill, Options{Secrets: []string{"short"}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a short key: %v", err)
	}
}
