package apisend

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/message"
)

func TestRecipientsOfRequests(t *testing.T) {
	const header = "From: a@example.com\n" +
		"To: Ann <Ann@Example.com>, =?utf-8?q?J=C3=BCrgen?= <j@b\u00fccher.example>\nCc: Cy <cy@example.com>, ANN@example.com\n\n"
	var crowd []string
	for i := range 5 {
		crowd = append(crowd, fmt.Sprintf("b%d@example.com", i))
	}
	for name, row := range map[string]struct {
		header string
		to     []string
		limit  int
		want   []string // "to | cc | bcc" of each request
	}{
		"as the header says": {header, []string{"cy@example.com", "ann@EXAMPLE.com", "j@xn--bcher-kva.example",
			"b0@example.com"}, 50,
			[]string{`"Ann" <ann@EXAMPLE.com>, "Jürgen" <j@xn--bcher-kva.example> | "Cy" <cy@example.com> | b0@example.com`}},
		"the spelling decides": {header, []string{"Ann@example.com", "ANN@example.com", "ann@example.com"}, 50,
			[]string{`"Ann" <Ann@example.com> |  | `, `ANN@example.com |  | `, `"Ann" <ann@example.com> |  | `}},
		"only of Cc": {header, []string{"b0@example.com", "cy@example.com"}, 50,
			[]string{`"Cy" <cy@example.com> |  | b0@example.com`}},
		"named nowhere": {header, crowd[:2], 50, []string{"b0@example.com |  | ", "b1@example.com |  | "}},
		"no To": {"From: a@example.com\nTo: undisclosed-recipients:;\n\n", crowd[:2], 50,
			[]string{"b0@example.com |  | ", "b1@example.com |  | "}},
		"more than fit": {header, append([]string{"ann@example.com", "cy@example.com"}, crowd...), 3,
			[]string{`"Ann" <ann@example.com> | "Cy" <cy@example.com> | b0@example.com`, "b1@example.com |  | ",
				"b2@example.com |  | ", "b3@example.com |  | ", "b4@example.com |  | "}},
		"more named than fit": {"From: a@example.com\nTo: " + strings.Join(crowd[:2], ",") + "\nCc: " +
			strings.Join(crowd[2:4], ",") + "\n\n", crowd, 2,
			[]string{"b0@example.com, b1@example.com |  | ", "b2@example.com | b3@example.com | ",
				"b4@example.com |  | "}},
		"one a request": {header, []string{"ann@example.com", "cy@example.com"}, 1,
			[]string{`"Ann" <ann@example.com> |  | `, `"Cy" <cy@example.com> |  | `}},
		"a bare address": {header, []string{"cy@example.com", "CY@example.com"}, 50,
			[]string{`"Cy" <cy@example.com> |  | `, `"Cy" <CY@example.com> |  | `}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range apart(t, raw(row.header)).recipients(row.to, row.limit) {
				got = append(got, list(g.to)+" | "+list(g.cc)+" | "+list(g.bcc))
			}
			if d := cmp.Diff(row.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func list(all []message.Address) string {
	var words []string
	for _, a := range all {
		if a.Name == "" {
			words = append(words, a.Address)
		} else {
			words = append(words, fmt.Sprintf("%q <%s>", a.Name, a.Address))
		}
	}
	return strings.Join(words, ", ")
}

// TestRecipientsAreComplete: each recipient is in one request, none is too long, and nobody sees a recipient
// that the header doesn't name.
func TestRecipientsAreComplete(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() (addresses []string) {
		for i := range 12 {
			if random.IntN(3) == 0 {
				addresses = append(addresses, fmt.Sprintf([]string{"a%d@x.example", "A%d@x.example"}[random.IntN(2)], i))
			}
		}
		random.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
		return addresses
	}
	for range 5000 {
		var c content
		for _, a := range some() {
			c.to = append(c.to, message.Address{Name: "to " + a, Address: a})
		}
		for _, a := range some() {
			c.cc = append(c.cc, message.Address{Name: "cc " + a, Address: a})
		}
		envelope, limit := some(), 1+random.IntN(6)
		var sent []string
		for _, g := range c.recipients(envelope, limit) {
			all := slices.Concat(g.to, g.cc, g.bcc)
			folded := map[string]bool{}
			for i, a := range all {
				sent = append(sent, a.Address)
				folded[strings.ToLower(a.Address)] = true
				if i < len(g.to)+len(g.cc) && a.Name == "" && len(all) > 1 {
					t.Fatalf("%v to %v shows %s in %v", c, envelope, a.Address, g)
				}
			}
			if len(g.to) == 0 || len(all) > limit || len(folded) != len(all) {
				t.Fatalf("%v to %v in requests of %d has %v", c, envelope, limit, g)
			}
		}
		slices.Sort(sent)
		slices.Sort(envelope)
		if !slices.Equal(sent, envelope) {
			t.Fatalf("%v to %v was sent to %v", c, envelope, sent)
		}
	}
}

func TestWhatAFileNeeds(t *testing.T) {
	for _, row := range []struct {
		name, kind     string
		ascii, matches bool
	}{
		{"a.csv", "text/csv; charset=utf-8", true, true},
		{"data.txt", "text/csv", true, false},
		{"Foto.JPG", "image/jpg", true, true},
		{"отчёт.pdf", "application/pdf", false, true},
		{"a.pdf", "application/octet-stream", true, false},
		{"a.bin", "application/octet-stream", true, true},
		{"", "application/octet-stream", true, true},
		{"", "application/pdf", true, false},
		{"invite.ics", "application/ics", true, true},
		{"a.b.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", true, true},
		{"a.tar.gz", "application/x-gzip", true, true},
		{"a.xml", "text/xml", true, true},
		{"a.unknown", "application/x-unknown", true, false},
	} {
		f := file{name: row.name, kind: row.kind}
		if f.asciiName() != row.ascii || f.typeMatchesName() != row.matches {
			t.Errorf("%q of type %s: ASCII %t, its type matches %t", row.name, row.kind, f.asciiName(),
				f.typeMatchesName())
		}
	}
	for name, kind := range sameTypes {
		if sameTypes[kind] != "" || !strings.Contains(name, "/") {
			t.Errorf("%s stands for %s, which stands for %s", name, kind, sameTypes[kind])
		}
	}
	if !(field{"X-A", "plain"}).isASCII() || (field{"X-A", "Grüße"}).isASCII() {
		t.Error("isASCII is wrong")
	}
}
