package outbox

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

// typical is a typical message: one recipient, one attempt.
func typical() ended {
	at := time.Date(2026, 11, 21, 15, 4, 5, 678_000_000, time.UTC)
	end := at.Add(120 * time.Millisecond)
	return ended{
		Envelope: envelope{
			Account: "shop", Source: "api", MessageID: "<4f0c1d2e3a5b6978@shop.example.org>",
			From: "bounces@shop.example.org",
			To:   []string{"margaret.hamilton@apollo.example.net"}, Subject: "Your order 4711 is on its way",
			Key:  "order-4711-shipped",
			Tags: []string{"orders"}, Metadata: json.RawMessage(`{"order":4711}`), Size: 8213,
		},
		Status: status{
			Recipients: []recipient{{Status: rcptSent, Response: "250 2.0.0 Ok: queued as 4Fz9wq1Xy8", Attempts: 1}},
			Log: []api.Attempt{{
				Number: 1, Start: at, End: &end, Host: "smtp.relay.example.com:587", TLS: "TLS 1.3", Code: 250,
				Line: "250 2.0.0 Ok: queued as 4Fz9wq1Xy8",
			}},
			Events: []pastEvent{{ID: "01KAJ2V3M4N5P6Q7R8S9T0V1W2", Type: event.MessageSent, At: at.UnixMilli(),
				Attempt: 1}},
		},
		Result: resultSent, At: at.UnixMilli(), Created: at.UnixMilli() - 7, Scheduled: at.UnixMilli() - 7,
		Lane: api.Transactional, Attempts: 1, Max: 10,
	}
}

func TestPackedComesBack(t *testing.T) {
	t.Parallel()
	c := newPacker()
	e := typical()
	packed, err := c.pack("id", &e)
	if err != nil {
		t.Fatal(err)
	}
	var back ended
	if err := c.unpack("id", []byte(packed), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back, cmp.AllowUnexported(envelope{})); diff != "" {
		t.Errorf("(-packed +unpacked):\n%s", diff)
	}
	if len(packed) > 400 {
		t.Errorf("a typical record takes %d bytes", len(packed))
	}
	for _, garbage := range []string{"", "garbage", "\x01", "\x01garbage", "\x03", "\x03garbage",
		packed[:len(packed)/2], packed[1:], "\x01\xff\xff\xff\xff\x0f"} {
		if err := c.unpack("id", []byte(garbage), &back); err == nil {
			t.Errorf("%q was unpacked", garbage)
		}
	}
}

// TestEveryFieldIsPacked: a field that visit forgets does not come back.
func TestEveryFieldIsPacked(t *testing.T) {
	t.Parallel()
	c := newPacker()
	var full, back ended
	fillFields(t, reflect.ValueOf(&full).Elem())
	for i := range full.Status.Log {
		full.Status.Log[i].Dialogue = nil // stored beside it
	}
	packed, err := c.pack("id", &full)
	must(t, err)
	must(t, c.unpack("id", []byte(packed), &back))
	if diff := cmp.Diff(full, back, cmp.AllowUnexported(envelope{})); diff != "" {
		t.Errorf("(-packed +unpacked):\n%s", diff)
	}
	raw := appendFields(nil, &full)
	for n := range raw {
		if err := readFields(raw[:n], &ended{}); err == nil {
			t.Errorf("%d of %d octets were read", n, len(raw))
		}
	}
}

// fillFields gives a value to every exported field within v.
func fillFields(t *testing.T, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(storyBegin.Add(678 * time.Microsecond)))
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"a":1}`))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				fillFields(t, v.Field(i))
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(t, v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillFields(t, v.Index(0))
		fillFields(t, v.Index(1))
	case v.Kind() == reflect.Array:
		fillFields(t, v.Index(0))
	case v.Kind() == reflect.String:
		v.SetString("some text")
	case v.CanInt():
		v.SetInt(-1 << 40)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("no way to fill a %s", v.Type())
	}
}

func BenchmarkPack(b *testing.B) {
	c := newPacker()
	e, size := typical(), 0
	for b.Loop() {
		packed, err := c.pack("id", &e)
		if err != nil {
			b.Fatal(err)
		}
		size = len(packed)
	}
	b.ReportMetric(float64(size), "bytes")
}
