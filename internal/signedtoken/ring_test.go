package signedtoken

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const messageID = "01JD3Z6Q3N8X4T5V6W7Y8Z9A00"

func testKey(id uint8) Key { return Key{ID: id, Secret: bytes.Repeat([]byte{id + 1}, 32)} }

func ring(t testing.TB, keys ...Key) *Ring {
	t.Helper()
	r, err := New(keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// samples has a token of each purpose that fills all it can.
func samples() map[Purpose]Token {
	return map[Purpose]Token{
		Open: {Account: "shop", MessageID: messageID, Recipient: 3},
		Click: {Account: "shop", MessageID: messageID, Recipient: Whole,
			URL: "https://shop.example/a?b=c&d=ü#e"},
		Unsubscribe: {Account: "shop", MessageID: messageID, Recipient: 65535, List: "news",
			Address: "ann@example.com"},
		Confirm: {Account: "shop", MessageID: messageID, Recipient: Whole, List: "news,weekly",
			Address: "ann@example.com"},
	}
}

func TestTokenComesBack(t *testing.T) {
	r := ring(t, testKey(0))
	for p, full := range samples() {
		for name, want := range map[string]Token{
			"full": full, "no account": {MessageID: messageID, URL: full.URL},
			"large": {Account: strings.Repeat("a", maxName), MessageID: messageID, URL: strings.Repeat(full.URL, 50)},
		} {
			if p != Click {
				want.URL = ""
			}
			token, err := r.Sign(p, want)
			if err != nil {
				t.Fatalf("%s, %s: %v", p, name, err)
			}
			if again, _ := r.Sign(p, want); again != token {
				t.Errorf("%s, %s: two texts of one token", p, name)
			}
			if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("%s, %s: %q is not for URLs", p, name, token)
			}
			got, err := r.Read(p, token)
			if err != nil {
				t.Errorf("%s, %s: %v", p, name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: %s", p, name, diff)
			}
		}
	}
}

func TestUnsubscribeWithoutMessage(t *testing.T) {
	r := ring(t, testKey(0))
	want := Token{Account: "shop", Recipient: Whole, Address: "ann@example.com"}
	token, err := r.Sign(Unsubscribe, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(Unsubscribe, token); err != nil || got != want || !got.Time().IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTime(t *testing.T) {
	if diff := cmp.Diff(time.Date(2024, 11, 20, 5, 2, 31, 541e6, time.UTC),
		(Token{MessageID: messageID}).Time()); diff != "" {
		t.Error(diff)
	}
}

func TestNoAddressInURLs(t *testing.T) {
	for _, p := range []Purpose{Unsubscribe, Confirm} {
		s := samples()[p]
		token, err := ring(t, testKey(0)).Sign(p, s)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		for _, text := range []string{s.Address, "example", s.List, s.Account} {
			if bytes.Contains(raw, []byte(text)) ||
				strings.Contains(token, base64.RawURLEncoding.EncodeToString([]byte(text))) {
				t.Errorf("%q is to be seen in the %s token", text, p)
			}
		}
	}
}

func TestForgedTokens(t *testing.T) {
	r := ring(t, testKey(0))
	for p, s := range samples() {
		token, err := r.Sign(p, s)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := base64.RawURLEncoding.DecodeString(token)
		for i := range raw {
			for bit := range 8 {
				changed := bytes.Clone(raw)
				changed[i] ^= 1 << bit
				if got, err := r.Read(p, base64.RawURLEncoding.EncodeToString(changed)); err == nil {
					t.Errorf("%s: changed at %d: reads as %+v", p, i, got)
				}
			}
		}
		foreign, _ := ring(t, Key{ID: 0, Secret: bytes.Repeat([]byte{9}, 32)}).Sign(p, s)
		for name, forged := range map[string]string{
			"empty": "", "of another secret": foreign, "cut": token[:len(token)-4], "longer": token + "AAAA",
			"not base64": "%%%", "padded": token + "=",
			"line break inside": token[:8] + "\n" + token[8:], "enormous": strings.Repeat("A", 1<<20),
			"header alone": "EA", "header and nothing": strings.Repeat("EAAA", 6),
		} {
			if _, err := r.Read(p, forged); !errors.Is(err, ErrForged) {
				t.Errorf("%s, %s: %v", p, name, err)
			}
		}
		for other := range Purpose(8) {
			if got, err := r.Read(other, token); other != p && !errors.Is(err, ErrForged) {
				t.Errorf("%s token reads as %s: %+v, %v", p, other, got, err)
			}
		}
	}
}

func TestRotation(t *testing.T) {
	old := ring(t, testKey(0))
	both, fresh := ring(t, testKey(1), testKey(0)), ring(t, testKey(1))
	for p, s := range samples() {
		token, err := old.Sign(p, s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := both.Read(p, token); err != nil {
			t.Errorf("%s: under the old key: %v", p, err)
		}
		if _, err := fresh.Read(p, token); !errors.Is(err, ErrUnknownKey) {
			t.Errorf("%s: under a key that was taken away: %v", p, err)
		}
		token, _ = both.Sign(p, s)
		if _, err := fresh.Read(p, token); err != nil {
			t.Errorf("%s: made by the first key: %v", p, err)
		}
	}
}

// TestKeysOfOneID: ids have four bits, so that sooner or later two secrets have the same.
func TestKeysOfOneID(t *testing.T) {
	first, second := Key{ID: 5, Secret: bytes.Repeat([]byte{1}, 32)}, Key{
		ID: 5, Secret: bytes.Repeat([]byte{2}, 32)}
	both := ring(t, first, second)
	for p, s := range samples() {
		token, _ := ring(t, second).Sign(p, s)
		if got, err := both.Read(p, token); err != nil || got != s {
			t.Errorf("%s: %+v, %v", p, got, err)
		}
	}
	address, _ := ring(t, second).ReturnPath(sentTo, "example.com")
	if _, err := both.ReadReturnPath(address); err != nil {
		t.Error(err)
	}
}

func TestKeyOf(t *testing.T) {
	ids := map[uint8]bool{}
	for i := range byte(100) {
		secret := bytes.Repeat([]byte{i}, 32)
		k := KeyOf(secret)
		if k.ID > 15 || k.ID != KeyOf(secret).ID {
			t.Fatalf("key id %d", k.ID)
		}
		ids[k.ID] = true
	}
	if len(ids) < 12 {
		t.Errorf("100 secrets share %d ids", len(ids))
	}
}

func TestTokensThatCannotBe(t *testing.T) {
	r := ring(t, testKey(0))
	for name, c := range map[string]struct {
		p Purpose
		s Token
	}{
		"no message":                {Open, Token{}},
		"not a ULID":                {Open, Token{MessageID: "abc"}},
		"index below the whole":     {Open, Token{MessageID: messageID, Recipient: -2}},
		"index too large":           {Open, Token{MessageID: messageID, Recipient: 1 << 16}},
		"click without target":      {Click, Token{MessageID: messageID}},
		"open with target":          {Open, Token{MessageID: messageID, URL: "https://x.test"}},
		"target too long":           {Click, Token{MessageID: messageID, URL: strings.Repeat("x", MaxURL+1)}},
		"account too long":          {Open, Token{MessageID: messageID, Account: strings.Repeat("x", maxName+1)}},
		"address of an open":        {Open, Token{MessageID: messageID, Address: "ann@example.com"}},
		"return path for a URL":     {ReturnPath, Token{MessageID: messageID}},
		"a purpose there is not":    {Purpose(9), Token{MessageID: messageID}},
		"unsubscribe, not a ULID":   {Unsubscribe, Token{MessageID: "abc"}},
		"confirm without a time":    {Confirm, Token{Address: "ann@example.com"}},
		"unsubscribe with a target": {Unsubscribe, Token{MessageID: messageID, URL: "https://x.test"}},
	} {
		if token, err := r.Sign(c.p, c.s); err == nil {
			t.Errorf("%s: %q", name, token)
		}
	}
}

func TestRefusedKeys(t *testing.T) {
	for name, keys := range map[string][]Key{
		"no key":       {},
		"short secret": {{Secret: []byte("short")}},
		"id too large": {testKey(16)},
	} {
		if _, err := New(keys); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestTokensStayTheSame: what was sent by an older version has to read.
func TestTokensStayTheSame(t *testing.T) {
	r := ring(t, testKey(0))
	got := map[string]string{}
	for p, s := range samples() {
		got[p.String()], _ = r.Sign(p, s)
	}
	got["return path"], _ = r.ReturnPath(sentTo, "example.com")
	got["proof"], _ = r.Proof(sentTo)
	want := map[string]string{
		"click":       "EAGTR_NcdUdJouzcP5H0qAAABHNob3AhaHR0cHM6Ly9zaG9wLmV4YW1wbGUvYT9iPWMmZD3DvCNlgdrsMTBhbmYlmjK4OihCCQ",
		"confirm":     "EDxsMpYJDonPqo53vrtav1RuBydukQOhnaJJvJ3YOaurIRQ4DTQcKZ7yVKcZnoSxMzR_wxSgVulqjpIi24qSEzWcIdahH5Xo2eJYB6b9IeX79h9NU9ljIzC26g",
		"open":        "EAGTR_NcdUdJouzcP5H0qAAEBHNob3CtE5QIEGr9Zovx3618WGgO",
		"proof":       "01jd3z6q3n8x4t5v6w7y8z9a00-cbcx7u627ot5jrstp4fk5y7lkmz7lqy",
		"return path": "bounces+agjup424ovdutixm3q7zd5fiaaiek76t3l52pvgga66bdp7xgzreegyb@example.com",
		"unsubscribe": "EGwy2AiyhMAxHGfHqBFhdOmKwWkJhxr15wJm-zlS6GvSErhXZ_f3tAaOgaYiSNpH5rzJbl4ckTIQgvQ722_TleGrMvHP_8Wrqly1J1sA32DlGTzAZVA",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzRead(f *testing.F) {
	r := ring(f, testKey(0), testKey(1))
	for p, s := range samples() {
		token, _ := r.Sign(p, s)
		f.Add(uint8(p), token)
	}
	f.Fuzz(func(t *testing.T, p uint8, in string) {
		s, err := r.Read(Purpose(p), in)
		if err != nil {
			if s != (Token{}) {
				t.Fatalf("%q is refused, and reads as %+v", in, s)
			}
			return
		}
		again, err := r.Sign(Purpose(p), s)
		if err != nil {
			t.Fatalf("%q reads as %+v, which has no token: %v", in, s, err)
		}
		if back, err := r.Read(Purpose(p), again); err != nil || back != s {
			t.Fatalf("%q reads as %+v, whose token reads as %+v, %v", in, s, back, err)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	r := ring(b, testKey(0))
	for p, s := range samples() {
		token, _ := r.Sign(p, s)
		b.Run(p.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Read(p, token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
