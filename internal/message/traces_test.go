package message

import "testing"

func TestTracesCoverEachSpellingAndNothingElse(t *testing.T) {
	t.Parallel()
	traces, err := NewTraces(" Ann.Lee+News@MÜLLER.example ")
	if err != nil {
		t.Fatal(err)
	}
	if traces.Address() != "ann.lee+news@xn--mller-kva.example" || !traces.Is("ANN.LEE+NEWS@müller.example") ||
		traces.Is("ann.lee@müller.example") {
		t.Errorf("address %q", traces.Address())
	}
	const e = Erased
	for text, want := range map[string]string{
		"":        "",
		"nothing": "nothing",
		"550 <Ann.Lee+News@Müller.Example>: unknown":                                   "550 <" + e + ">: unknown",
		"ann.lee+news@xn--mller-kva.example,ann.lee+news@xn--mller-kva.example":        e + "," + e,
		"https://x.test/?to=ann.lee%2bnews%40xn--mller-kva.example&b=1":                "https://x.test/?to=" + e + "&b=1",
		"Write to ann.lee+news@müller.example.":                                        "Write to " + e + ".",
		"joann.lee+news@müller.example ann.lee+news@müller.example.org":                "",
		"x-ann.lee+news@müller.example ann.lee+news@müller.examples ann.lee@müller.ex": "",
	} {
		if want == "" {
			want = text
		}
		if got := traces.Cover(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if traces.In(text) != (want != text) {
			t.Errorf("%q: In is %t", text, traces.In(text))
		}
	}
	if _, err := NewTraces("nobody"); err == nil {
		t.Error("no address: no error")
	}
}

func TestTracesCoverJSON(t *testing.T) {
	t.Parallel()
	traces, err := NewTraces("a&b@example.com")
	if err != nil {
		t.Fatal(err)
	}
	raw := `{"n":1.50,"to":["A\u0026b@example.com","c@example.com"],"why":"no\na&b@example.com \"x\""}`
	want := `{"n":1.50,"to":["erased@erased.invalid","c@example.com"],"why":"no\nerased@erased.invalid \"x\""}`
	if got, found := traces.CoverJSON(raw); got != want || !found {
		t.Errorf("%s, %t", got, found)
	}
	if got, found := traces.CoverJSON(`{"to":"b@example.com"}`); found || got != `{"to":"b@example.com"}` {
		t.Errorf("%s, %t", got, found)
	}
}
