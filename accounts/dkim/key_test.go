package dkim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

// inPEM writes a block.
func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestParse(t *testing.T) {
	private := parsed(t, RSA).signer.(*rsa.PrivateKey)
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	curveDER, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	pkcs1 := x509.MarshalPKCS1PrivateKey(private)
	for _, row := range []struct {
		name, text string
		kind       string
		bits       int
		fault      string
	}{
		{"RSA in PKCS #8", pems()[RSA], RSA, 2048, ""},
		{"RSA in PKCS #1", inPEM("RSA PRIVATE KEY", pkcs1), RSA, 2048, ""},
		{"text around it", "my key:\n" + pems()[RSA] + "end\n", RSA, 2048, ""},
		{"Ed25519", pems()[Ed25519], Ed25519, 256, ""},
		{"nothing", "", "", 0, "is not PEM: it must begin"},
		{"the bare base64", strings.Split(pems()[RSA], "\n")[1], "", 0, "is not PEM: it must begin"},
		{"too short", inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(short)), "", 0,
			"is an RSA key of 1024 bits: receivers take 2048 to 4096"},
		{"another curve", inPEM("PRIVATE KEY", curveDER), "", 0, "is neither an RSA nor an Ed25519 key"},
		{"the public one", inPEM("PUBLIC KEY", nil), "", 0, "is public"},
		{"locked", inPEM("ENCRYPTED PRIVATE KEY", nil), "", 0, "is locked with a passphrase"},
		{"locked the old way", strings.Replace(inPEM("RSA PRIVATE KEY", pkcs1), "-----\n",
			"-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1), "", 0, "is locked with a passphrase"},
		{"damaged", inPEM("PRIVATE KEY", pkcs1[:99]), "", 0, "is damaged"},
		{"something else", inPEM("EC PRIVATE KEY", nil), "", 0, `is PEM of "EC PRIVATE KEY"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			k, err := Parse(row.text)
			if row.fault != "" {
				if err == nil || !strings.HasPrefix(err.Error(), row.fault) {
					t.Errorf("%v, want %q", err, row.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if k.Kind() != row.kind || k.Bits() != row.bits {
				t.Errorf("%s of %d bits", k.Kind(), k.Bits())
			}
		})
	}
}

func TestGenerateRefuses(t *testing.T) {
	for _, row := range []struct {
		kind string
		bits int
	}{{RSA, 1024}, {RSA, 8192}, {Ed25519, 256}, {"dsa", 0}, {"", 0}} {
		if text, err := Generate(row.kind, row.bits); err == nil {
			t.Errorf("%q of %d bits: %q", row.kind, row.bits, text)
		}
	}
}

func TestRecordIsReadBack(t *testing.T) {
	for _, kind := range []string{RSA, Ed25519} {
		k := parsed(t, kind)
		text := record(t, k)
		p, err := CheckRecord(text, k)
		if err != nil || p.Kind != kind || p.Bits != k.Bits() || p.Testing {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
		pieces := ZoneStrings(text)
		if strings.Join(pieces, "") != text {
			t.Errorf("the strings of the zone file are not the record: %q", pieces)
		}
		for _, piece := range pieces {
			if len(piece) > 255 || piece == "" {
				t.Errorf("a string of %d octets", len(piece))
			}
		}
	}
	want := `s1._domainkey.example.com. IN TXT ( "v=DKIM1; p=x" )`
	if got := ZoneLine("s1", "example.com", "v=DKIM1; p=x"); got != want {
		t.Errorf("%s", got)
	}
}

func TestCheckRecord(t *testing.T) {
	k, other := parsed(t, RSA), parsed(t, Ed25519)
	good := record(t, k)
	_, public, _ := strings.Cut(good, "p=")
	bare := inPEM("X", x509.MarshalPKCS1PublicKey(k.signer.Public().(*rsa.PublicKey)))
	bare = strings.Join(strings.Split(strings.TrimSpace(bare), "\n")[1:], "")
	bare, _, _ = strings.Cut(bare, "-----")
	for _, row := range []struct{ name, record, fault string }{
		{"the least", "p=" + public, ""},
		{"blanks and line breaks", " v = DKIM1 ;\tk = rsa;; p = " + public[:40] + "\r\n " + public[40:] + " ; ",
			""},
		{"the key in the form of RFC 6376", "v=DKIM1; p=" + bare, ""},
		{"further tags", "v=DKIM1; h=sha1:sha256; s=email; t=s; n=note; p=" + public, ""},
		{"another version", "v=DKIM2; p=" + public, "must begin with v=DKIM1"},
		{"the version last", "p=" + public + "; v=DKIM1", "must begin with v=DKIM1"},
		{"no key", "v=DKIM1; k=rsa", "has no key"},
		{"revoked", "v=DKIM1; p=", "is revoked"},
		{"twice", "p=" + public + "; p=" + public, "is not a list"},
		{"another kind", record(t, other),
			"publishes a key of kind ed25519, and mail is signed with one of kind rsa"},
		{"an unknown kind", "v=DKIM1; k=dsa; p=" + public, `has a key of kind "dsa"`},
		{"cut off", good[:255], "has a key that is"},
		{"no base64", "v=DKIM1; p=***", "has a key that is not base64"},
		{"SHA-1 only", "v=DKIM1; h=sha1; p=" + public, "does not allow SHA-256"},
		{"for something else", "v=DKIM1; s=tlsrpt; p=" + public, "is not for mail"},
		{"half an Ed25519 key", "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg==",
			"has an Ed25519 key of 16 octets"},
		{"something else at that name", "v=spf1 -all", "must begin with v=DKIM1"},
		{"text", "hello", "is not a list"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := CheckRecord(row.record, k)
			if row.fault == "" && err != nil || row.fault != "" &&
				(err == nil || !strings.HasPrefix(err.Error(), row.fault)) {
				t.Errorf("%v, want %q", err, row.fault)
			}
		})
	}
	another, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CheckRecord(good, &Key{another}); err == nil ||
		!strings.HasPrefix(err.Error(), "publishes another key") {
		t.Errorf("another key of the same kind: %v", err)
	}
	if p, err := CheckRecord("v=DKIM1; t=s:y; p="+public, nil); err != nil || !p.Testing {
		t.Errorf("without a key, testing: %+v, %v", p, err)
	}
}

func TestCheckDomainAndSelector(t *testing.T) {
	for in, want := range map[string]string{
		"example.com": "example.com", "Mail.Example.COM.": "mail.example.com",
		"bücher.example": "xn--bcher-kva.example",
		"":               "", "localhost": "", "co.uk": "", "a..b": "", "-a.example": "", "a b.example": "",
		"a;b.example":   "",
		"x\r\n.example": "", strings.Repeat("a.", 130) + "example": "",
	} {
		if got, err := CheckDomain(in); got != want || (err == nil) != (want != "") {
			t.Errorf("domain %q: %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"s1": "s1", "S1": "s1", "mail-2030.eu": "mail-2030.eu",
		"": "", "a_b": "", "a..b": "", "-a": "", "ü": "", "a; p=x": "", strings.Repeat("a.", 100) + "a": "",
	} {
		if got, err := CheckSelector(in); got != want || (err == nil) != (want != "") {
			t.Errorf("selector %q: %q, %v", in, got, err)
		}
	}
}

func FuzzCheckRecord(f *testing.F) {
	k := parsed(f, Ed25519)
	f.Add(record(f, k))
	f.Add(record(f, parsed(f, RSA)))
	f.Add("v=DKIM1; h=sha256:sha1; s=*; t=y:s; p=")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := CheckRecord(text, nil)
		if err == nil && (p.Bits == 0 || p.key == "") {
			t.Errorf("%q passes as %+v", text, p)
		}
		if _, err := CheckRecord(text, k); err == nil && p.key != strings.Split(record(t, k), "p=")[1] {
			t.Errorf("%q passes for another key", text)
		}
	})
}

// Bits returns the size of the key.
func (k *Key) Bits() int {
	if private, ok := k.signer.(*rsa.PrivateKey); ok {
		return private.N.BitLen()
	}
	return 256
}
