package message_test

import (
	"testing"

	"github.com/postroom/postroom/internal/message"
)

// TestAddressesAreFoundByBothFormsOfTheirDomain follows RFC 5890, 2.3.2.1, and UTS 46.
func TestAddressesAreFoundByBothFormsOfTheirDomain(t *testing.T) {
	t.Parallel()
	const stored = "Müller@xn--bcher-kva.example"
	for part, want := range map[string]bool{
		"müller@bücher.example": true, "MU\u0308LLER@BU\u0308CHER.example": true, "bücher.example": true,
		"@büch": true, "üch": true, "xn--bcher": true, "müller@xn--bcher-kva.example": true, "": true,
		"bucher.example": false, "bücher.examples": false,
	} {
		if got := message.AddressHas(stored, part); got != want {
			t.Errorf("%q: %v", part, got)
		}
	}
	if stored := message.ASCIIDomain("a@Straße.example"); stored != "a@xn--strae-oqa.example" ||
		!message.AddressHas(stored, "STRAßE") {
		t.Error("ß isn't found")
	}
	for address, want := range map[string]string{"": "", "a@b.example": "a@b.example",
		"ü@b.example":    "ü@b.example",
		"Bücher.Example": "xn--bcher-kva.example", "a@ü .example": "a@ü .example"} {
		if got := message.ASCIIDomain(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
