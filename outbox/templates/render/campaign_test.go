package render

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/links"
)

var letters = flag.Int("letters", 100, "random letters to write, to ten people each")

// hardValues are people's names and data in hard cases.
var hardValues = []any{
	"Ann Smith", "Ann", "", "Zoë O'Hara & <b>", "日本語の名前", strings.Repeat("long ", 30) + "name",
	strings.Repeat("x", 1200),
	".dot", "From me", "=?utf-8?Q?x?=", "a=b", "two\r\nlines", "a\nb", "a\rb", "\xff\xfe", "\x00", "tab\tbed",
	" led", "ends ",
	"\u202egnp.exe", "\u2028", "{{name}}", `"quoted"`, "https://x.test/?a=1&b=2", "javascript:x", 7, true, nil,
	[]any{"one", "Zoë", "three\n"}, []any{}, strings.Repeat("ä", 300), "data:image/png;base64,iVBORw0KGgo=",
}

// blocks are what letters are made of. %d becomes a number.
var blocks = []string{
	"Hello {{rcpt.name}},\n", "{{params.a}}\n", "{{#if params.b}}With {{params.b}}\n{{else}}Without\n{{/if}}",
	"{{#each params.c}}- {{this}}\n{{/each}}", "It was a good month.\n", "\n", strings.Repeat("words ", 30) + "\n",
	strings.Repeat("A line of the newsletter, with what is new this week.\n", 30), "grün {{params.a}}\n", ".\n", "From\n",
	"Leave: {{rcpt.unsubscribeUrl}}\n", "{{> part}}", "{{{params.a}}} ", "no end",
}

var htmlBlocks = []string{
	"<p>Hello {{rcpt.name}},</p>\n", `<p title="{{params.a}}">{{params.b}}</p>` + "\n", `<a href="https://shop.test/%d">Sale</a>`,
	`<a href="https://shop.test/?u={{params.a}}">{{params.b}}</a>` + "\n", `<a href="{{params.b}}">link</a>`,
	`<p><a href="{{rcpt.unsubscribeUrl}}">Leave</a></p>` + "\n", `<img src="https://shop.test/%d.png" alt="{{params.a}}">`,
	"<style>p{color:red} a{color:blue}</style>", strings.Repeat("<p>What is new <b>this</b> week.</p>\n", 30), "</body>",
	`<a href={{rcpt.unsubscribeUrl}}>Leave</a>`, `<div hidden><a href="{{rcpt.unsubscribeUrl}}">Leave</a></div>`,
	`<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`, "<head><title>{{params.a}}</title></head><body>",
}

func some(dice *rand.Rand, from ...string) string {
	var b strings.Builder
	for range dice.IntN(7) {
		b.WriteString(strings.ReplaceAll(pick(dice, from), "%d", fmt.Sprint(dice.IntN(3))))
	}
	return b.String()
}

// randomLetter returns the content of a campaign.
func randomLetter(dice *rand.Rand) Content {
	c := Content{From: message.Address{Name: "Shop", Address: "shop@x.test"}, ServiceURL: "https://p.test",
		Headers: []message.Header{{Name: "X-Campaign", Value: "news"}}}
	c.Source.Subject = pick(dice, []string{"News", "News for {{rcpt.name}}", "{{params.a}}", ""})
	c.Source.PreviewText = pick(dice, []string{"", "", "New this week", "For {{params.b}}"})
	c.Options.Partials = map[string]string{"part": "  Part {{params.b}}\n"}
	if dice.IntN(3) > 0 {
		c.Source.Text = some(dice, blocks...)
	}
	if c.Source.Text == "" || dice.IntN(3) > 0 {
		c.Source.HTML = some(dice, append(htmlBlocks, blocks...)...)
	}
	if dice.IntN(4) == 0 {
		c.Source.Format = FormatMarkdown
	}
	if dice.IntN(4) == 0 {
		c.Options.Layout = "<html><head><style>p{margin:0}</style></head><body>{{> @partial-block}}</body></html>\n"
	}
	c.Options.InlineCSS = dice.IntN(4) == 0
	if dice.IntN(6) == 0 {
		c.Attachments = []message.Attachment{{Filename: "a.txt", Content: []byte("a file")}}
	}
	return c
}

// randomReader returns who gets a letter, and the identity of their mail.
func randomReader(dice *rand.Rand, number int, opens, clicks bool) (Personalization, Identity) {
	value := func() any {
		if dice.IntN(2) == 0 {
			return hardValues[dice.IntN(3)] // most people are ordinary
		}
		return hardValues[dice.IntN(len(hardValues))]
	}
	to := message.Address{Address: fmt.Sprintf("r%d@x.test", number)}
	if name, ok := value().(string); ok {
		to.Name = name
	}
	if dice.IntN(10) == 0 {
		to.Address = pick(dice, []string{"zoë@x.test", "no address", "ann@bücher.test"})
	}
	p := Personalization{To: []message.Address{to}, Date: 1_893_456_000_000 + int64(number)*1000,
		Decoded: map[string]any{"a": value(), "b": value(), "c": value()}}
	leave := fmt.Sprintf("https://p.test/unsubscribe?t=%s%d", strings.Repeat("t", dice.IntN(200)), number)
	n := Identity{MessageID: fmt.Sprintf("<%d@x.test>", number), UnsubscribeURL: leave, PreferencesURL: leave,
		Envelope: &message.Envelope{From: "bounces@x.test", To: []string{to.Address}},
		Headers:  []message.Header{{Name: "List-Unsubscribe", Value: "<" + leave + ">"}}}
	if opens || clicks {
		n.Links = func() (links.Options, error) {
			o := links.Options{Keep: []string{"https://p.test/unsubscribe"}}
			if opens {
				o.Pixel = fmt.Sprint("https://p.test/o/", number)
			}
			if clicks {
				o.Link = func(to string) (string, error) { return fmt.Sprint("https://p.test/c/", number, "?", to), nil }
			}
			return o, nil
		}
	}
	return p, n
}

// sameMail compares an email from a renderer that has written others with one from a new renderer.
func sameMail(t *testing.T, used *Renderer, p Personalization, n Identity) {
	t.Helper()
	fresh, err := New(used.Content())
	if err != nil {
		t.Fatal(err)
	}
	want, words, err := fresh.Render(t.Context(), p, n, true)
	got, mail, wrong := used.Render(t.Context(), p, n, true)
	if (err == nil) != (wrong == nil) || err != nil && err.Error() != wrong.Error() {
		t.Fatalf("got %v, want %v", wrong, err)
	}
	if diff := cmp.Diff(words, mail, cmpopts.IgnoreUnexported(mail)); diff != "" {
		t.Fatalf("words of %+v (-new +used):\n%s", used.Content().Source, diff)
	}
	if err != nil {
		return
	}
	if !bytes.Equal(want.Raw, got.Raw) {
		t.Fatalf("mail of %+v:\n%s\nwant\n%s", used.Content().Source, got.Raw, want.Raw)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Fatal(diff)
	}
	way := "https://p.test/unsubscribe?t="
	if shows := mail.ShowsLink(way); shows != message.ShowsLink(mail.HTML, way) {
		t.Fatalf("%s\nshows a way to leave: %v", mail.HTML, shows)
	}
}

// TestEveryMailOfACampaignIsAsIfComposedAlone writes random letters to random people: what was kept of the
// mail before must not show.
func TestEveryMailOfACampaignIsAsIfComposedAlone(t *testing.T) {
	t.Parallel()
	for seed := range *letters {
		dice := rand.New(rand.NewPCG(7, uint64(seed)))
		r, err := New(randomLetter(dice))
		if err != nil {
			continue
		}
		opens, clicks := dice.IntN(2) == 0, dice.IntN(2) == 0
		for number := range 10 {
			p, n := randomReader(dice, number, opens, clicks)
			sameMail(t, r, p, n)
		}
	}
}

// FuzzCampaign writes any letter to people with any words.
func FuzzCampaign(f *testing.F) {
	for i, block := range htmlBlocks {
		f.Add(block, blocks[i], "Ann", "Bob", i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, html, text, a, b string, clicks bool) {
		r, err := New(Content{From: message.Address{Address: "shop@x.test"},
			Source: Source{Subject: "News", HTML: html, Text: text}})
		if err != nil {
			return
		}
		dice := rand.New(rand.NewPCG(1, 2))
		for number, value := range []string{"Ann", "Bob", a, b, a + b} {
			p, n := randomReader(dice, number, clicks, clicks)
			p.Decoded = map[string]any{"a": value, "b": b}
			sameMail(t, r, p, n)
		}
	})
}
