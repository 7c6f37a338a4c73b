package seal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/redisdb/seal"
)

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, seal.MinSecret) }

func ring(t testing.TB, current []byte, older ...[]byte) *seal.Ring {
	t.Helper()
	r, err := seal.New(current, older...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealedOpensForItsRecordOnly(t *testing.T) {
	r := ring(t, secret(1))
	for _, plain := range []string{"", "hunter2", strings.Repeat("long ", 10_000)} {
		sealed := r.Seal([]byte(plain), "account:1")
		if plain != "" && strings.Contains(sealed, plain) {
			t.Fatal("the plain text is readable")
		}
		got, err := r.Open(sealed, "account:1")
		if err != nil || string(got) != plain {
			t.Errorf("opened %d bytes, %v, want %d", len(got), err, len(plain))
		}
		if _, err := r.Open(sealed, "account:2"); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("for another record: %v", err)
		}
	}
}

// TestACodeIsOfItsTextAndRecordOnly: who writes to Redis makes no record that verifies.
func TestACodeIsOfItsTextAndRecordOnly(t *testing.T) {
	r := ring(t, secret(1))
	code := r.MAC([]byte("text"), "token:1")
	if err := r.Verify(code, []byte("text"), "token:1"); err != nil {
		t.Fatal(err)
	}
	sealed := r.Seal([]byte("text"), "token:1")
	for name, err := range map[string]error{
		"another text":   r.Verify(code, []byte("Text"), "token:1"),
		"another record": r.Verify(code, []byte("text"), "token:2"),
		"a shifted end":  r.Verify(code, []byte("1text"), "token:"),
		"no code":        r.Verify("", []byte("text"), "token:1"),
		"a sealed value": r.Verify(sealed, []byte("text"), "token:1"),
		"a cut code":     r.Verify(code[:len(code)-2], []byte("text"), "token:1"),
	} {
		if !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	during := ring(t, secret(2), secret(1))
	if err := during.Verify(code, []byte("text"), "token:1"); err != nil || !during.NeedsRotation(code) {
		t.Errorf("under the older secret: %v", err)
	}
	if err := ring(t, secret(2)).Verify(code, []byte("text"), "token:1"); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("the older secret is gone: %v", err)
	}
}

func TestRefusedRecordsAreNamedOnce(t *testing.T) {
	r := ring(t, secret(1))
	_, _ = r.Open(r.Seal(nil, `a:pass host="h"`), `a:pass host="evil"`)
	_ = r.Verify("v1.x", nil, "token:1")
	if got := strings.Join(r.Refused(), ","); got != "a:pass,token:1" {
		t.Errorf("refused: %s", got)
	}
	if got := r.Refused(); len(got) > 0 {
		t.Errorf("named again: %s", got)
	}
}

func TestSealingTwiceLooksDifferent(t *testing.T) {
	r := ring(t, secret(1))
	first, second := r.Seal([]byte("x"), "a"), r.Seal([]byte("x"), "a")
	if first == second {
		t.Error("two sealings are equal")
	}
}

func TestEveryChangedCharacterIsNoticed(t *testing.T) {
	r := ring(t, secret(1), secret(2))
	sealed := r.Seal([]byte("hunter2"), "account:1")
	for i := range len(sealed) {
		for _, c := range []byte{'A', 'B', '.', 'z', 0} {
			if sealed[i] == c {
				continue
			}
			changed := sealed[:i] + string(c) + sealed[i+1:]
			if plain, err := r.Open(changed, "account:1"); err == nil {
				t.Fatalf("opened as %q with character %d changed: %s", plain, i, changed)
			}
		}
		if plain, err := r.Open(sealed[:i], "account:1"); err == nil {
			t.Fatalf("opened as %q when cut at %d", plain, i)
		}
	}
}

func TestRotation(t *testing.T) {
	before := ring(t, secret(1))
	sealed := before.Seal([]byte("x"), "a")
	if before.NeedsRotation(sealed) {
		t.Error("a fresh value needs rotation")
	}
	during := ring(t, secret(2), secret(1))
	if plain, err := during.Open(sealed, "a"); err != nil || string(plain) != "x" {
		t.Errorf("under the older secret: %q, %v", plain, err)
	}
	if !during.NeedsRotation(sealed) {
		t.Error("a value under the older secret needs no rotation")
	}
	again := during.Seal([]byte("x"), "a")
	after := ring(t, secret(2))
	if _, err := after.Open(again, "a"); err != nil {
		t.Errorf("sealed again: %v", err)
	}
	if _, err := after.Open(sealed, "a"); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("the older secret is gone: %v", err)
	}
	if after.NeedsRotation("not sealed") {
		t.Error("what isn't sealed needs rotation")
	}
}

func TestShortSecretsAreRefused(t *testing.T) {
	if _, err := seal.New(make([]byte, 31)); err == nil {
		t.Error("31 bytes are accepted")
	}
	if _, err := seal.New(secret(1), []byte("old")); err == nil {
		t.Error("a short older secret is accepted")
	}
}

func TestDerivedKeysDifferByPurposeAndSecret(t *testing.T) {
	a, b := ring(t, secret(1)), ring(t, secret(2), secret(1))
	keyOf := func(r *seal.Ring, purpose string) string {
		k, err := r.Derive(purpose)
		if err != nil || len(k) != 32 {
			t.Fatalf("%d bytes, %v", len(k), err)
		}
		return string(k)
	}
	if again := keyOf(ring(t, secret(1)), "tracking"); again != keyOf(a, "tracking") {
		t.Error("the same purpose gives different keys")
	}
	if keyOf(a, "tracking") == keyOf(a, "webhooks") || keyOf(a, "tracking") == keyOf(b, "tracking") {
		t.Error("keys of different purposes or secrets are equal")
	}
	all, err := b.DeriveAll("tracking")
	if err != nil || len(all) != 2 || string(all[0]) != keyOf(b, "tracking") ||
		string(all[1]) != keyOf(a, "tracking") {
		t.Errorf("DeriveAll: %d keys, %v", len(all), err)
	}
}

func TestRepeatedSecretsCountOnce(t *testing.T) {
	all, err := ring(t, secret(1), secret(1), secret(2)).DeriveAll("x")
	if err != nil || len(all) != 2 {
		t.Errorf("%d keys, %v, want 2", len(all), err)
	}
}

// FuzzOpen: whatever Redis, or whoever writes to it, hands us, nothing opens that was not sealed.
func FuzzOpen(f *testing.F) {
	r := ring(f, secret(1), secret(2))
	genuine := r.Seal([]byte("hunter2"), "a")
	for _, s := range []string{genuine, "", "v1", "v1.", "v1..", "v1.00000000.", genuine[:30], genuine + "=",
		genuine + "\n", strings.Replace(genuine, "v1", "v2", 1)} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, sealed, aad string) {
		r.NeedsRotation(sealed)
		plain, err := r.Open(sealed, aad)
		// each fuzzing process has its own genuine one
		if err == nil && (len(sealed) != len(genuine) || aad != "a" || string(plain) != "hunter2") {
			t.Errorf("opened %q for %q as %q", sealed, aad, plain)
		}
	})
}

func BenchmarkSealOpen(b *testing.B) {
	r := ring(b, secret(1))
	plain := []byte("smtp://user:hunter2@mail.example.com:587")
	for b.Loop() {
		if _, err := r.Open(r.Seal(plain, "account:1"), "account:1"); err != nil {
			b.Fatal(err)
		}
	}
}
