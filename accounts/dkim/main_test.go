package dkim

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// pems makes one key of each kind for all tests: making an RSA key takes its time.
var pems = sync.OnceValue(func() map[string]string {
	made := map[string]string{}
	for _, kind := range []string{RSA, Ed25519} {
		text, err := Generate(kind, 0)
		if err != nil {
			panic(err)
		}
		made[kind] = text
	}
	return made
})

func parsed(t testing.TB, kind string) *Key {
	t.Helper()
	k, err := Parse(pems()[kind])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func record(t testing.TB, k *Key) string {
	t.Helper()
	text, err := Record(k)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// wire writes an email with the line ends of the wire.
func wire(text string) []byte { return []byte(strings.ReplaceAll(text, "\n", "\r\n")) }
