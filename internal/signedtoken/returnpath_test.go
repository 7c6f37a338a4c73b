package signedtoken

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// sentTo is what a message of the account shop to one recipient is signed with.
var sentTo = Token{MessageID: messageID, Account: "shop", Address: "Ann@example.net"}

// carried returns the return path and the Message-ID of a message, with the function that reads each.
func carried(t testing.TB, r *Ring, about Token) map[string]func(string) (Sent, error) {
	t.Helper()
	path, err := r.ReturnPath(about, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	proof, err := r.Proof(about)
	if err != nil {
		t.Fatal(err)
	}
	id := "<" + proof + "@example.com>"
	return map[string]func(string) (Sent, error){path: r.ReadReturnPath, id: r.ReadProof}
}

func TestProofsComeBack(t *testing.T) {
	r := ring(t, testKey(0))
	for address, read := range carried(t, r, sentTo) {
		local, _, _ := strings.Cut(strings.Trim(address, "<>"), "@")
		if len(local) > 64 {
			t.Errorf("%s: a local part of %d octets", address, len(local))
		}
		for name, form := range map[string]string{
			"as made": address, "upper case": strings.ToUpper(address), "in brackets": "<" + address + ">",
			"no domain":      local,
			"another domain": strings.Replace(address, "example.com", "other.example", 1),
		} {
			s, err := read(form)
			if err != nil || s.MessageID != messageID || s.Whole || !s.Of("shop") || !s.To("ann@EXAMPLE.net") {
				t.Errorf("%s, %s: %+v, %v", address, name, s, err)
			}
			if s.Of("other") || s.Of("") || s.To("bob@example.net") || s.To("") {
				t.Errorf("%s, %s: proves what it must not", address, name)
			}
		}
	}
	for address, read := range carried(t, r, Token{MessageID: messageID, Account: "shop"}) {
		if s, err := read(address); err != nil || !s.Whole || !s.Of("shop") || s.To("ann@example.net") || s.To("") {
			t.Errorf("to several, %s: %+v, %v", address, s, err)
		}
	}
	if (Sent{}).Of("") || (Sent{}).To("") {
		t.Error("nothing proves something")
	}
}

func TestForgedProofs(t *testing.T) {
	r := ring(t, testKey(0))
	other := sentTo
	other.Address = "bob@example.net"
	foreign := ring(t, Key{ID: 0, Secret: bytes.Repeat([]byte{9}, 32)})
	for genuine, read := range carried(t, r, sentTo) {
		local, domain, _ := strings.Cut(strings.Trim(genuine, "<>"), "@")
		for i := range len(local) {
			changed := []byte(local)
			changed[i]++
			if changed[i] == 'z'+1 || changed[i] == '7'+1 {
				changed[i] = 'a'
			}
			if s, err := read(string(changed) + "@" + domain); err == nil {
				t.Errorf("%s changed at %d: verifies as %+v", genuine, i, s)
			}
		}
		for name, forged := range map[string]string{
			"empty": "", "cut": local[:len(local)-2], "longer": local + "aa", "nothing of ours": "postmaster",
			"not base32": local[:len(local)-1] + "1", "enormous": "bounces+" + strings.Repeat("a", 1<<20),
			"line break": local[:40] + "\n" + local[40:],
		} {
			if _, err := read(forged + "@" + domain); !errors.Is(err, ErrForged) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for address := range carried(t, foreign, sentTo) {
		for own, read := range carried(t, r, sentTo) {
			if _, err := read(address); !errors.Is(err, ErrForged) {
				t.Errorf("%s of another secret, read as %s: %v", address, own, err)
			}
		}
	}
	// the signature of a message to one address, under the tags of another
	mine, _ := r.Proof(sentTo)
	theirs, _ := r.Proof(other)
	if _, err := r.ReadProof(theirs[:len(theirs)-16] + mine[len(mine)-16:]); !errors.Is(err, ErrForged) {
		t.Errorf("mixed: %v", err)
	}
	path, _ := r.ReturnPath(sentTo, "example.com")
	if _, err := r.ReadProof(strings.ToLower(messageID) + "-" + path[len(path)-12-31:len(path)-12]); err == nil {
		t.Error("a return path serves as a Message-ID")
	}
}

func TestProofsOfOtherKeys(t *testing.T) {
	old, both, fresh := ring(t, testKey(0)), ring(t, testKey(1), testKey(0)), ring(t, testKey(1))
	path, err := old.ReturnPath(sentTo, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	proof, err := old.Proof(sentTo)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Sent{first(both.ReadReturnPath(path)), first(both.ReadProof(proof))} {
		if !s.Of("shop") || !s.To("ann@example.net") {
			t.Errorf("under the old key: %+v", s)
		}
	}
	if _, err := fresh.ReadReturnPath(path); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("under a key that was taken away: %v", err)
	}
}

func first(s Sent, _ error) Sent { return s }

func TestProofsThatCannotBe(t *testing.T) {
	r := ring(t, testKey(0))
	for _, id := range []string{"", "abc"} {
		if _, err := r.ReturnPath(Token{MessageID: id}, "example.com"); err == nil {
			t.Errorf("%q: a return path", id)
		}
		if _, err := r.Proof(Token{MessageID: id}); err == nil {
			t.Errorf("%q: a proof", id)
		}
	}
}

func FuzzReadProofs(f *testing.F) {
	r := ring(f, testKey(0), testKey(1))
	for address := range carried(f, r, sentTo) {
		f.Add(address)
	}
	f.Add("bounces+@")
	f.Fuzz(func(t *testing.T, in string) {
		for _, read := range []func(string) (Sent, error){r.ReadReturnPath, r.ReadProof} {
			s, err := read(in)
			if err != nil {
				continue
			}
			if _, err := r.Proof(Token{MessageID: s.MessageID}); err != nil {
				t.Fatalf("%q reads as %+v, of which there is no proof: %v", in, s, err)
			}
		}
	})
}
