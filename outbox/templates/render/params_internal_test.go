package render

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzDecode: params are what encoding/json reads of them, with the digits of their numbers, and what it
// refuses is refused.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `[]`, `"x"`, `1`, ` {"a":[1,2.50,-0e9,{"b":null}],"a":true} `,
		`{"a":"\ud800","b":"\u00e4\n","":"` + "\xff" + `"}`, `{"a":12345678901234567890.00}`, `{"a":}`, `{"a":1,}`,
		`{"a"`, `{"a":[}`, `{"a":01}`, ``, `{}{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(asEncodingJSON)
}

// TestDecodeIsBounded: what is nested too deep is refused.
func TestDecodeIsBounded(t *testing.T) {
	for depth, accepted := range map[int]bool{9000: true, 20_000: false} {
		raw := []byte(`{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
		if _, err := decode(raw); (err == nil) != accepted {
			t.Errorf("%d deep: %v", depth, err)
		}
		asEncodingJSON(t, raw)
	}
}

func asEncodingJSON(t *testing.T, raw []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var want map[string]any
	refused := d.Decode(&want)
	got, err := decode(raw)
	if (err != nil) != (refused != nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%.200q: %v, %v; want %v, %v", raw, got, err, want, refused)
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := []byte(`{"digest":{"groups":[` + strings.TrimSuffix(strings.Repeat(
		`{"category":"comments","title":"A walk","count":3,"actors":[{"id":"7","name":"Ann"}],"others":0},`,
		10), ",") + `],"total":30}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}
