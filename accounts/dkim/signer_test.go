package dkim

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// signer signs with the domain keys of a store.
func signer(b bundle) *Signer { return NewSigner(b.Keys) }

func TestSignerChoosesTheKey(t *testing.T) {
	b := setup(t)
	b.add(t, key("example.com", "stored"))
	s := signer(b)
	account := func(domain string) *api.DKIM {
		return &api.DKIM{Domain: domain, Selector: "account", PrivateKey: pems()[Ed25519]}
	}
	for _, row := range []struct {
		name    string
		account *api.DKIM
		from    string
		want    string
	}{
		{"none", nil, "other.example", ""},
		{"the domain's", nil, "example.com", "d=example.com; s=stored"},
		{"in whatever case", nil, "News.Example.COM", "d=example.com; s=stored"},
		{"the account's, of the same domain", account("example.com"), "example.com", "d=example.com; s=account"},
		{"the account's, of a domain above", account("example.com"), "news.example.com",
			"d=example.com; s=account"},
		{"the account's, of a domain beside", account("mail.example.com"), "news.example.com",
			"d=mail.example.com; s=account"},
		{"the domain's, since the account's is not aligned", account("other.example"), "example.com",
			"d=example.com; s=stored"},
		{"the account's, for want of a better one", account("other.example"), "third.example",
			"d=other.example; s=account"},
		{"public suffixes align nothing", account("a.co.uk"), "b.co.uk", "d=a.co.uk; s=account"},
	} {
		t.Run(row.name, func(t *testing.T) {
			mail := wire("From: ann@" + row.from + "\n\nx\n")
			out, err := s.Sign(t.Context(), Owner{Key: row.account, Trusted: true}, row.from, b.clock.Now(), mail)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasSuffix(out, mail) {
				t.Error("the message was changed")
			}
			head := strings.ReplaceAll(string(out[:len(out)-len(mail)]), "\r\n\t", " ")
			if got := regexp.MustCompile(`d=\S+; s=\w+`).FindString(head); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
			if row.want != "" && !strings.Contains(head, " t=1772366400; ") {
				t.Errorf("not dated: %s", head)
			}
		})
	}
}

func TestSignerFails(t *testing.T) {
	b := setup(t)
	b.add(t, key("broken.example", "s1"))
	s := signer(process(t, b.url, "another secret"))
	mail := wire("From: ann@broken.example\n\nx\n")
	trusted := Owner{Trusted: true}
	if out, err := s.Sign(t.Context(), trusted, "broken.example", b.clock.Now(), mail); err == nil ||
		!bytes.Equal(out, mail) {
		t.Errorf("a key that does not open: %q, %v", out, err)
	}
	bad := &api.DKIM{Domain: "example.com", Selector: "s1", PrivateKey: "hunter2"}
	if _, err := s.Sign(t.Context(), Owner{Key: bad}, "example.com", b.clock.Now(), mail); err == nil ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a key that is none: %v", err)
	}
}

func TestSignerParsesAnAccountsKeyOnce(t *testing.T) {
	s := signer(setup(t))
	d := &api.DKIM{Domain: "example.com", Selector: "s1", PrivateKey: pems()[RSA]}
	first, err := s.ofAccount(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.ofAccount(d)
	if err != nil || first.Key != again.Key {
		t.Errorf("parsed again, %v", err)
	}
	for i := range 3 * maxParsed {
		s.keep(string(rune(i))+"x", first.Key)
	}
	if len(s.parsed) > maxParsed {
		t.Errorf("%d parsed keys are kept", len(s.parsed))
	}
}

func TestSignerOnAStore(t *testing.T) {
	b := setup(t)
	b.add(t, key("example.com", "s1"))
	s := NewSigner(b.Keys)
	out, err := s.Sign(t.Context(), Owner{Trusted: true}, "example.com", b.clock.Now(),
		wire("From: ann@example.com\n\nx\n"))
	if err != nil {
		t.Fatal(err)
	}
	ask(t, []question{{name: "by the stored key", mail: out, key: parsed(t, Ed25519), holds: true}})
}

// TestNobodysMailIsUnsigned: the key of a domain signs only for an account that owns the domain, or if nobody
// checks the senders of the mail.
func TestNobodysMailIsUnsigned(t *testing.T) {
	b := setup(t)
	b.add(t, key("example.com", "stored"))
	s := signer(b)
	mail := wire("From: ann@example.com\n\nx\n")
	owns := func(domain string) func(string) bool { return func(d string) bool { return d == domain } }
	for name, row := range map[string]struct {
		owner  Owner
		signed bool
	}{
		"of nobody": {Owner{}, false}, "of an account alone": {Owner{Account: "a"}, false},
		"of another's owner": {Owner{Account: "a", Owns: owns("a.example")}, false},
		"of its owner":       {Owner{Account: "a", Owns: owns("example.com")}, true},
		"unchecked":          {Owner{Account: "a", Trusted: true}, true},
	} {
		out, err := s.Sign(t.Context(), row.owner, "example.com", b.clock.Now(), mail)
		if err != nil || bytes.HasPrefix(out, []byte("DKIM-Signature")) != row.signed {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}
