package message_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/message"
)

// hard are values that a person may have, and that change more than their place in a message.
var hard = []string{
	"", "Ann", "Zoë", "日本語", strings.Repeat("very ", 30) + "long", strings.Repeat("x", 1200), ".", "..", ".dot",
	"From me", "From ", "a=b", "=3D", "=", "a\r\nb", "a\nb", "a\rb", "\r", "\n", "\r\n.\r\n", "ends ", "ends\t",
	"\tx",
	"\xff\xfe", "a\xc3", "\xa9", "\x00", "\x7f", "\u2028", "\ufeff", "<b>&amp;",
	"data:image/png;base64,iVBORw0KGgo=",
	`<img src="data:image/png;base64,iVBORw0KGgo=">`, "--=_0_", strings.Repeat("é", 400),
	strings.Repeat("=", 200),
	strings.Repeat("w ", 40), "=?utf-8?Q?x?=", "https://x.test/?a=1&b=2",
}

// frames are lines around values, which %s stands for.
var frames = []string{
	"Hello %s,\n", "%s\n", "%s", "It was a good month.\n", "\n", "x %s y\r\n",
	strings.Repeat("long ", 20) + "%s\n",
	strings.Repeat("long ", 20) + "\n", ".\n", "From here\n", "a = b\n", "grün\n", "ends \n", "no end",
	"bare\rreturn\n",
	"<p>%s</p>\n", "<html><body>\n", "</body></html>", "broken \xc3\n", strings.Repeat("A line of text.\n", 100),
	strings.Repeat("ä", 300) + "\n", "%s" + strings.Repeat("z", 70) + "%s\n",
}

// filledIn returns frames with values in them.
func filledIn(dice *rand.Rand, chosen []int, values []string) string {
	var b strings.Builder
	for _, i := range chosen {
		for before, rest := "", frames[i]; rest != ""; {
			var more bool
			before, rest, more = strings.Cut(rest, "%s")
			b.WriteString(before)
			if more {
				b.WriteString(values[dice.IntN(len(values))])
			}
		}
	}
	return b.String()
}

// TestComposerMakesTheSameMessages composes campaigns of random lines to random people, with what was kept of
// the mail before and without.
func TestComposerMakesTheSameMessages(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(3, 4))
	campaigns := 500
	if testing.Short() {
		campaigns = 200
	}
	for range campaigns {
		var text, html []int
		for range dice.IntN(9) {
			text = append(text, dice.IntN(len(frames)))
		}
		for range dice.IntN(9) {
			html = append(html, dice.IntN(len(frames)))
		}
		values := []string{hard[dice.IntN(len(hard))], hard[dice.IntN(len(hard))], hard[dice.IntN(len(hard))]}
		var composer message.Composer
		for n := range 8 {
			d := message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Subject: "News",
				Text: filledIn(dice, text, values), HTML: filledIn(dice, html, values), PreviewText: values[0],
				MessageID: fmt.Sprintf("<%d@x.test>", n)}
			sameMessage(t, &composer, d)
		}
	}
}

// sameMessage compares a composer's message with one that is composed again.
func sameMessage(t *testing.T, composer *message.Composer, d message.Draft) {
	t.Helper()
	want, err := message.Compose(d, steady())
	got, wrong := composer.Compose(d, steady())
	if (err == nil) != (wrong == nil) || err != nil && err.Error() != wrong.Error() {
		t.Fatalf("got %v, want %v", wrong, err)
	}
	if err == nil && (!bytes.Equal(got.Raw, want.Raw) || got.SMTPUTF8 != want.SMTPUTF8 ||
		got.EightBit != want.EightBit || got.Size() != want.Size()) {
		t.Fatalf("of the text %q and the html %q:\n%s\nwant\n%s", d.Text, d.HTML, got.Raw, want.Raw)
	}
}

// FuzzComposer composes texts after others that differ from them in a part.
func FuzzComposer(f *testing.F) {
	for i, frame := range frames {
		f.Add(frame, hard[i%len(hard)], hard[(i+7)%len(hard)], frames[(i+1)%len(frames)])
	}
	f.Fuzz(func(t *testing.T, before, one, other, after string) {
		var composer message.Composer
		for n, value := range []string{one, other, one + other, other} {
			text := before + value + after
			sameMessage(t, &composer, message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Text: text,
				HTML: after + text, PreviewText: value, MessageID: fmt.Sprintf("<%d@x.test>", n)})
		}
	})
}
