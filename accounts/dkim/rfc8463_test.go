package dkim

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"os"
	"testing"
)

// TestRFC8463 takes the example of RFC 8463 appendix A. Our canonical form is the one that was signed there,
// the key is read as it was meant, and signing it again gives the very same signature.
func TestRFC8463(t *testing.T) {
	mail, err := os.ReadFile("testdata/rfc8463.eml")
	if err != nil {
		t.Fatal(err)
	}
	h, body, err := parse(mail)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := base64.StdEncoding.EncodeToString(
		hashBody(body)), "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="; got != want {
		t.Errorf("the body's hash is %s, want %s", got, want)
	}
	var text []byte
	// each named twice or once, there once
	for _, name := range []string{"from", "to", "subject", "date", "message-id"} {
		for _, f := range h.last(name, 1) {
			text = appendRelaxed(text, f)
		}
	}
	field := h.last("DKIM-Signature", 1)[0]
	unsigned := field[:bytes.Index(field, []byte(" b="))+3]
	text = bytes.TrimSuffix(appendRelaxed(text, unsigned), []byte("\r\n"))
	hash := sha256.Sum256(text)

	seed, err := base64.StdEncoding.DecodeString("nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		t.Fatal(err)
	}
	k, err := Parse(inPEM("PRIVATE KEY", der))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := record(t,
		k), "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="; got != want {
		t.Errorf("the record is %s, want %s", got, want)
	}
	signature, err := k.sign(hash[:])
	if err != nil {
		t.Fatal(err)
	}
	want := "/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw=="
	if got := base64.StdEncoding.EncodeToString(signature); got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}
