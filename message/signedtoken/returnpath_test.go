package signedtoken

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestReturnPathComesBack(t *testing.T) {
	r := ring(t, testKey(0))
	for _, recipient := range []int{Whole, 0, 1, 127, 128, 9999, 65535} {
		want := Token{MessageID: messageID, Recipient: recipient}
		address, err := r.ReturnPath(messageID, recipient, "example.com")
		if err != nil {
			t.Fatal(err)
		}
		local, _, _ := strings.Cut(address, "@")
		if len(local) > 64 {
			t.Errorf("recipient %d: local part of %d octets", recipient, len(local))
		}
		for name, form := range map[string]string{
			"as made": address, "upper case": strings.ToUpper(address), "in brackets": "<" + address + ">",
			"no domain":      local,
			"title case":     strings.ToUpper(address[:1]) + address[1:],
			"another domain": strings.Replace(address, "example.com", "other.example", 1),
		} {
			got, err := r.ReadReturnPath(form)
			if err != nil || got != want {
				t.Errorf("recipient %d, %s: %+v, %v", recipient, name, got, err)
			}
		}
	}
}

func TestForgedReturnPaths(t *testing.T) {
	r := ring(t, testKey(0))
	token := func(r *Ring, recipient int) string {
		address, err := r.ReturnPath(messageID, recipient, "example.com")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(strings.TrimPrefix(address, "bounces+"), "@example.com")
	}
	genuine, other := token(r, 3), token(r, 4)
	foreign := token(ring(t, Key{ID: 0, Secret: bytes.Repeat([]byte{9}, 32)}), 3)
	for name, forged := range map[string]string{
		"empty": "", "of another secret": foreign, "cut": genuine[:len(genuine)-2], "longer": genuine + "aa",
		"no return path":                 "postmaster",
		"signature of another recipient": genuine[:29] + other[29:], "not base32": strings.Repeat("1",
			len(genuine)), "enormous": strings.Repeat("a", 1<<20),
	} {
		if _, err := r.ReadReturnPath("bounces+" + forged + "@example.com"); !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, address := range map[string]string{"without the prefix": genuine + "@example.com",
		"with another": "replies+" + genuine + "@example.com", "empty": ""} {
		if _, err := r.ReadReturnPath(address); !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range len(genuine) {
		changed := []byte(genuine)
		changed[i]++
		if changed[i] == 'z'+1 || changed[i] == '7'+1 {
			changed[i] = 'a'
		}
		if got, err := r.ReadReturnPath("bounces+" + string(changed)); err == nil {
			t.Errorf("changed at %d: verifies as %+v", i, got)
		}
	}
}

func TestReturnPathsOfOtherKeys(t *testing.T) {
	old, both, fresh := ring(t, testKey(0)), ring(t, testKey(1), testKey(0)), ring(t, testKey(1))
	address, err := old.ReturnPath(messageID, 0, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := both.ReadReturnPath(address); err != nil {
		t.Errorf("under the old key: %v", err)
	}
	if _, err := fresh.ReadReturnPath(address); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("under a key that was taken away: %v", err)
	}
}

func TestReturnPathsThatCannotBe(t *testing.T) {
	r := ring(t, testKey(0))
	for name, c := range map[string]struct {
		id        string
		recipient int
	}{
		"no id": {}, "not a ULID": {id: "abc"}, "index below the whole": {messageID, -2}, "index too large": {
			messageID, 1 << 16},
	} {
		if _, err := r.ReturnPath(c.id, c.recipient, "example.com"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzReadReturnPath(f *testing.F) {
	r := ring(f, testKey(0), testKey(1))
	address, _ := r.ReturnPath(messageID, 3, "example.com")
	f.Add(address)
	f.Add("bounces+@")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := r.ReadReturnPath(in)
		if err != nil {
			return
		}
		if _, err := r.ReturnPath(s.MessageID, s.Recipient, "example.com"); err != nil {
			t.Fatalf("%q reads as %+v, which has no return path: %v", in, s, err)
		}
	})
}
