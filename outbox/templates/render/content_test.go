package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// welcome is a content with everything.
func welcome() Content {
	return Content{
		Source: Source{Subject: "Hi {{params.name}}",
			HTML: "<style>p{color:red}</style><p>{{params.name}} of {{rcpt.address}} at {{formatDate params.at \"HH:mm\"}}</p>"},
		Options: Options{InlineCSS: true, Partials: map[string]string{"b": "x", "a": "y"}}, Strict: true,
		TZ: "Asia/Tokyo", Locale: "ja",
		Account: Person{Name: "Shop", Address: "shop@x.test"}, From: message.Address{
			Name: "Shop", Address: "shop@x.test"},
		ReplyTo: []message.Address{{Address: "help@x.test"}}, Headers: []message.Header{
			{Name: "X-Campaign", Value: "7"}},
		Attachments: []message.Attachment{{Filename: "a.txt", Content: []byte("file")}},
	}
}

func personal(name string) Personalization {
	return Personalization{To: []message.Address{{Name: name, Address: "ann@x.test"}},
		Params: fmt.Appendf(nil, `{"name":%q,"at":"2030-01-01T00:00:00Z"}`, name), Date: 1_893_456_000_000}
}

func TestPackedContentRendersTheSame(t *testing.T) {
	l := welcome()
	name, packed, err := l.Pack()
	if err != nil || len(name) != 22 {
		t.Fatalf("%q, %v", name, err)
	}
	again, _, err := welcome().Pack()
	if err != nil || again != name {
		t.Errorf("equal contents are called %s and %s, %v", name, again, err)
	}
	l.Headers[0].Value = "8"
	if other, _, err := l.Pack(); err != nil || other == name {
		t.Errorf("another content is called the same: %v", err)
	}
	read, err := Unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	first := write(t, welcome(), personal("Ann"), "<1@x.test>")
	if second := write(t, read, personal("Ann"), "<1@x.test>"); !bytes.Equal(first, second) {
		t.Errorf("the message differs:\n%s\n%s", first, second)
	}
	for _, want := range []string{
		"Subject: Hi Ann\r\n", "To: Ann <ann@x.test>\r\n", "Reply-To: help@x.test\r\n", "X-Campaign: 7\r\n",
		"Date: Tue, 01 Jan 2030 00:00:00 +0000\r\n",
		"Message-ID: <1@x.test>\r\n", `color: red`, "at 09:00", "ZmlsZQ",
	} {
		if !strings.Contains(strings.ReplaceAll(string(first), "=\r\n", ""), want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
	if other := write(t, welcome(), personal("Ann"), "<2@x.test>"); bytes.Equal(
		first[bytes.Index(first, []byte("boundary")):], other[bytes.Index(other, []byte("boundary")):]) {
		t.Error("another message has the same boundaries")
	}
}

func write(t *testing.T, l Content, s Personalization, id string) []byte {
	t.Helper()
	w, err := New(l)
	if err != nil {
		t.Fatal(err)
	}
	c, words, err := w.Render(t.Context(), s, Identity{MessageID: id}, true)
	if err != nil || words.Subject != c.Subject || words.Text == "" {
		t.Fatalf("%+v, %v", words, err)
	}
	return c.Raw
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	w, err := New(welcome())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Personalization, *Identity)
		kind   fault.Kind
		key    string
	}{
		"a name of lines": {func(s *Personalization, _ *Identity) { s.To[0].Name = "A\r\nB: c" }, fault.Invalid,
			"to[0].name"},
		"no address": {func(s *Personalization, _ *Identity) { s.To[0].Address = "ann" }, fault.Invalid,
			"to[0].address"},
		"nobody": {func(s *Personalization, _ *Identity) { s.To = nil }, fault.Invalid, "to"},
		"no message id": {func(_ *Personalization, n *Identity) { n.MessageID = "<a b>" }, fault.Invalid,
			"messageId"},
		"params that are not": {func(s *Personalization, _ *Identity) { s.Params = []byte(`[1]`) }, fault.Invalid,
			"params"},
		"a param missing": {func(s *Personalization, _ *Identity) { s.Params = []byte(`{"at":0}`) },
			fault.Unprocessable, "subject"},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := personal("Ann"), Identity{MessageID: "<1@x.test>"}
			c.change(&s, &n)
			_, _, err := w.Render(t.Context(), s, n, false)
			_, _, full := w.Render(t.Context(), s, n, true)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Kind != c.kind || f.Fields[0].Key != c.key || full == nil || full.Error() != err.Error() {
				t.Errorf("%v and %v, want %s %s", err, full, c.kind, c.key)
			}
		})
	}
	c, _, err := w.Render(t.Context(), personal("Ann"), Identity{MessageID: "<1@x.test>"}, false)
	if err != nil || c.Subject != "Hi Ann" || c.Envelope.To[0] != "ann@x.test" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, zone := range []string{"Mars/Olympus", "Local", "../etc"} {
		l := welcome()
		l.TZ = zone
		if _, err := New(l); !fault.Is(err, fault.Invalid) {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

func TestCacheKeepsToItsSize(t *testing.T) {
	fetched := map[string]int{}
	_, packed, err := Content{Plain: true, Locale: strings.Repeat("x", 370)}.Pack()
	if err != nil {
		t.Fatal(err)
	}
	c := NewCache(2*len(packed) + 10)
	get := func(n int) {
		name := fmt.Sprint(n)
		if _, err := c.Get(t.Context(), name, func(context.Context) ([]byte, error) {
			fetched[name]++
			return packed, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{1, 2, 1, 3, 1, 2, 4} { // 2 goes for 3, 3 for 2, 1 for 4
		get(n)
	}
	if fetched["1"] != 1 || fetched["2"] != 2 || fetched["3"] != 1 || c.used > 2*len(packed)+10 ||
		c.order.Len() != len(c.byName) {
		t.Errorf("fetched %v, %d bytes kept", fetched, c.used)
	}
}

func TestCacheFetchesOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(0)
		var calls atomic.Int32
		release := make(chan struct{})
		fetch := func(context.Context) ([]byte, error) {
			calls.Add(1)
			<-release
			_, packed, err := Content{Plain: true}.Pack()
			return packed, err
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := c.Get(t.Context(), "a", fetch); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(release)
		all.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("fetched %d times", n)
		}
		away := errors.New("away")
		if _, err := c.Get(t.Context(), "b", func(context.Context) ([]byte, error) {
			return nil, away
		}); !errors.Is(err, away) {
			t.Errorf("%v", err)
		}
		if _, err := c.Get(t.Context(), "b", fetch); err != nil {
			t.Errorf("an error was kept: %v", err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	w, err := New(welcome())
	if err != nil {
		b.Fatal(err)
	}
	s := personal("Ann")
	for b.Loop() {
		if _, _, err := w.Render(b.Context(), s, Identity{MessageID: "<1@x.test>"}, false); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzUnpack: data in Redis is ours, and yet none of it may end the process.
func FuzzUnpack(f *testing.F) {
	_, packed, err := welcome().Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add(packed[:len(packed)-2])
	f.Fuzz(func(t *testing.T, packed []byte) {
		l, err := Unpack(packed)
		if err != nil {
			return
		}
		_, again, err := l.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unpack(again); err != nil {
			t.Errorf("what was read can't be read again: %v", err)
		}
	})
}

// BenchmarkNews writes one email of a campaign, as make campaign sends it.
func BenchmarkNews(b *testing.B) {
	words := strings.Repeat("<p>Some words of a newsletter that is read in a minute, with what is new this week.</p>\n", 20)
	w, err := New(Content{From: message.Address{Name: "Shop", Address: "shop@x.test"}, Source: Source{
		Subject: "News for {{subscriber.name}}",
		HTML: "<h1>Hello {{subscriber.name}} in {{subscriber.attributes.city}}</h1>" + words +
			`<p><a href="https://shop.test/sale">Sale</a> <a href="{{rcpt.unsubscribeUrl}}">Leave</a></p>`}})
	if err != nil {
		b.Fatal(err)
	}
	p := Personalization{To: []message.Address{{Name: "Ann Smith", Address: "ann@x.test"}},
		Date: 1_893_456_000_000,
		Params: []byte(`{"campaign":{"id":"news","name":"News","tags":[]},"subscriber":{"id":"s1","email":"ann@x.test",` +
			`"name":"Ann Smith","attributes":{"city":"Vienna","plan":"pro"}}}`)}
	leave := "https://x.test/unsubscribe?t=" + strings.Repeat("a", 90)
	b.ReportAllocs()
	for b.Loop() {
		_, _, err := w.Render(b.Context(), p, Identity{MessageID: "<1@x.test>", UnsubscribeURL: leave,
			Headers: []message.Header{
				{Name: "List-ID", Value: "<weekly.x.test>"}, {Name: "List-Unsubscribe", Value: "<" + leave + ">"},
				{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"}}}, true)
		if err != nil {
			b.Fatal(err)
		}
	}
}
