package e2e_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/internal/testredis"
)

// picture is a page as docs/pictures shows it.
type picture struct {
	name, path, theme string
	width, height     int64 // 0: 1200 and 760
}

var pictures = []picture{
	{name: "overview", path: "/"}, {name: "outbox", path: "/outbox"}, {name: "log", path: "/log"},
	{name: "message", path: "/messages/{letter}?view=html", height: 1500},
	{name: "why", path: "/to/rcpt-550@example.net"}, {name: "failed", path: "/replay"},
	{name: "webhooks", path: "/webhooks/{endpoint}"}, {name: "campaign", path: "/campaigns/autumn"},
	{name: "digests", path: "/digests/recipients/shop/u1"}, {name: "queues", path: "/queues"},
	{name: "overview-phone", path: "/", theme: "dark", width: 390, height: 844},
	{name: "outbox-phone", path: "/outbox", theme: "dark", width: 390, height: 844},
}

// steady puts fixed values where a page has those of its run: the time of the picture is 4 January 2027, and
// ids and addresses of this machine are those of examples.
const steady = `(() => {
	const Real = Date, shift = Real.parse("2027-01-04T09:30:00Z") - Real.now();
	window.Date = class extends Real {
		constructor(...given) { given.length ? super(...given) : super(Real.now() + shift); }
		static now() { return Real.now() + shift; }
	};
	const moved = (text) => new Real(Real.parse(text) + shift).toISOString();
	for (const t of document.querySelectorAll("time")) t.dateTime = moved(t.dateTime);
	for (const t of document.querySelectorAll("text[data-at]")) t.dataset.at = moved(t.dataset.at);
	localize(document);
	const ids = new Map(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	const known = (id) => {
		if (!ids.has(id)) ids.set(id, id.slice(0, 2) + "KE4J2S0000000000000000".slice(0, id.length - 4) + (10 + ids.size));
		return ids.get(id);
	};
	while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data
		.replace(/\b01[0-9A-HJKMNP-TV-Z]{24}\b|\b[a-z2-7]{20,}\b/g, known)
		.replace(/<01[0-9a-z]{24}-\w+@/g, "<01ke4j2s0000000000000000@")
		.replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "2027-01-04T09:29:40Z")
		.replace(/\b\d\d? [A-Z][a-z]+ 20\d\d \d\d:\d\d:\d\d UTC/g, "4 January 2027 09:29:40 UTC")
		.replace(/https?:\/\/127\.0\.0\.1:\d+/g, "https://app.example.com")
		.replace(/127\.0\.0\.1(:\d+)?/g, "relay.example.net:587").replace(/rcpt-550(\+2)?@/g, "nobody@");
	for (const field of document.querySelectorAll("input")) field.value = field.value.replace("rcpt-550@", "nobody@");
	document.activeElement?.blur();
})()`

// TestPictures takes the pictures of docs/pictures with -update. Without it there is nothing to do: that they
// are there, and small, is tested with the documentation.
func TestPictures(t *testing.T) {
	t.Parallel()
	if !*update {
		return
	}
	redis := testredis.Server(t) // keeps what it has on disk, so that no page has an alert
	s := newStory(t, redis.URL(), nil)
	s.shown(t)
	v := visit(t, s.url)
	v.enter(s.token)
	if _, err := chromedp.Call(v.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{
		TimezoneID: "UTC"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		v.look(cmp.Or(p.theme, "light"), cmp.Or(p.width, 1200))
		v.do(chromedp.EmulateViewport(cmp.Or(p.width, 1200), cmp.Or(p.height, 760)))
		v.open(s.paths([]string{p.path})[0])
		v.comes(`[...document.querySelectorAll("iframe")].every((f) => f.loading !== "lazy")`)
		v.do(chromedp.Evaluate[chromedp.Void](steady))
		raw, err := png.Decode(bytes.NewReader(run(v, chromedp.CaptureScreenshot())))
		if err != nil {
			t.Fatal(err)
		}
		var small bytes.Buffer
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		if err := encoder.Encode(&small, fewColours(raw)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("../../docs/pictures", p.name+".png"), small.Bytes(),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fewColours returns a picture in its 256 most frequent colours.
func fewColours(from image.Image) *image.Paletted {
	bounds, counts := from.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	often := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return counts[b] - counts[a] })
	var palette color.Palette
	for _, c := range often[:min(256, len(often))] {
		palette = append(palette, c)
	}
	to, nearest := image.NewPaletted(bounds, palette), map[color.RGBA]uint8{}
	for c := range counts {
		nearest[c] = uint8(palette.Index(c))
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			to.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	return to
}
