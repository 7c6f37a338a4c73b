package message_test

import (
	"testing"

	"github.com/postroom/postroom/internal/message"
)

// TestAnAddressIsOneInBothSpellings: its letters are composed (RFC 6532 section 3.1), and its traces are
// found in what earlier versions stored.
func TestAnAddressIsOneInBothSpellings(t *testing.T) {
	const apart, composed = "zoe\u0308@a.example", "zo\u00eb@a.example"
	for _, address := range []string{apart, composed} {
		if got, err := message.NormalizeAddress(address); got != composed || err != nil {
			t.Errorf("%q is %q, %v", address, got, err)
		}
		traces, err := message.NewTraces(address)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"to " + apart + " and", "to " + composed + " and"} {
			if got := traces.Cover(text); got != "to "+message.Erased+" and" || !traces.In(text) {
				t.Errorf("%q has %q: %q", text, address, got)
			}
		}
	}
	if got := message.DedupeAddresses([]string{apart, composed}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
