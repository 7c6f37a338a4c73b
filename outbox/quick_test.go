package outbox

import (
	"bytes"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/api"
)

// TestOnlyWhatLeavesImmediatelyIsPackedQuickly: a content that waits for longer is packed with zstd, which
// takes less memory, or is packed again when its first attempt ends.
func TestOnlyWhatLeavesImmediatelyIsPackedQuickly(t *testing.T) {
	t.Parallel()
	for _, sealing := range []bool{false, true} {
		b := setup(t, Options{Window: 3})
		b.under(t, sealing, "a")
		b.sender.replies = map[string]string{"later@x.test": "451 4.2.1 later", "never@x.test": "550 5.1.1 nobody"}
		submit := func(to string, at *time.Time) string {
			return b.submit(t, api.SubmitRequest{To: for1(to), SendAt: at})
		}
		quick := func(id string, want bool) {
			t.Helper()
			packed, err := b.store.DB.Client().Get(t.Context(), b.store.keys.content(0, id)).Bytes()
			must(t, err)
			opened, err := b.store.codec.opened(packed, contentName(id))
			if err != nil || isQuick(opened) != want {
				t.Errorf("sealing: %v: packed quickly: %v, want %v, %v", sealing, isQuick(opened), want, err)
			}
			content, err := b.store.codec.unpackAll(opened, "", small)
			if err != nil || !bytes.HasSuffix(content, []byte("\r\n\r\nx\r\n")) {
				t.Errorf("sealing: %v: content is %q, %v", sealing, content, err)
			}
		}
		quick(submit("ann@x.test", new(storyBegin.Add(time.Hour))), false)
		for _, to := range []string{"later@x.test", "never@x.test"} {
			id := submit(to, nil)
			quick(id, true)
			b.deliver(t, id)
			quick(id, false)
		}
		for i := range 6 { // the fourth begins the backlog
			quick(submit("ann@x.test", nil), i < 4)
		}
	}
}

// TestWhatIsPackedAgainIsWhatWasAccepted: an attempt adds headers to a copy. What is packed again is the
// content that was stored, so that the next attempt can add them.
func TestWhatIsPackedAgainIsWhatWasAccepted(t *testing.T) {
	t.Parallel()
	b := setupMarked(t, Options{})
	b.sender.replies = map[string]string{"b@x.test": "451 4.2.1 later"}
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Raw: []byte(rawHTML), ListID: "news"})
	must(t, err)
	accepted := string(mustContent(t, b, a.QueueID))
	b.deliver(t, a.QueueID)
	if got := string(mustContent(t, b, a.QueueID)); got != accepted {
		t.Errorf("stored is\n%s\naccepted was\n%s", got, accepted)
	}
}

// TestQuickContentsComeBack, of any size, and only if they are not too large.
func TestQuickContentsComeBack(t *testing.T) {
	t.Parallel()
	c, err := newCodec(sealer{})
	must(t, err)
	rapid.Check(t, func(t *rapid.T) {
		content := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 2000).Draw(t, "part"),
			rapid.IntRange(1, 30).Draw(t, "times"))
		packed := c.pack(content, "", true)
		if isQuick(packed) != (len(content) <= quickMost) {
			t.Fatalf("%d octets packed quickly: %v", len(content), isQuick(packed))
		}
		stream, err := c.stream(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := io.ReadAll(stream)
		if err != nil || !bytes.Equal(streamed, content) {
			t.Fatalf("streamed %d octets of %d: %v", len(streamed), len(content), err)
		}
		for _, most := range []int{len(content), len(content) - 1} {
			unpacked, err := c.unpackAll(slices.Clone(packed), "", most)
			if fits := most == len(content); fits != (err == nil) || fits && !bytes.Equal(unpacked, content) {
				t.Fatalf("unpacked %d octets of %d, of %d at most: %v", len(unpacked), len(content), most, err)
			}
		}
	})
}

func BenchmarkContent(b *testing.B) {
	c, err := newCodec(sealer{})
	if err != nil {
		b.Fatal(err)
	}
	content, err := os.ReadFile("../docs/flow.md")
	if err != nil {
		b.Fatal(err)
	}
	content = content[:4<<10]
	for name, quick := range map[string]bool{"zstd": false, "s2": true} {
		packed := c.pack(content, "", quick)
		b.Run("pack/"+name, func(b *testing.B) {
			for b.Loop() {
				packed = c.pack(content, "", quick)
			}
			b.ReportMetric(float64(len(packed)), "octets")
		})
		b.Run("unpack/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.unpack(packed, "", len(content)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
