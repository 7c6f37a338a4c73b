package message_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/internal/message"
)

func TestNormalizeAddress(t *testing.T) {
	long := func(local, domain int) string {
		label := strings.Repeat("d", 60) + "."
		return strings.Repeat("l", local) + "@" + strings.Repeat(label, domain/61) + strings.Repeat("e", domain%61)
	}
	for _, row := range []struct{ name, in, want, err string }{
		{"plain", "bob@example.net", "bob@example.net", ""},
		{"domain in lower case, local part as it is", "Bob.B@EXAMPLE.Net", "Bob.B@example.net", ""},
		{"every atext", "!#$%&'*+-/=?^_`{|}~a9@example.net", "!#$%&'*+-/=?^_`{|}~a9@example.net", ""},
		{"one label", "root@localhost", "root@localhost", ""},
		{"sub-address", "bob+tag@example.net", "bob+tag@example.net", ""},
		{"quotes without need", `"bob"@example.net`, "bob@example.net", ""},
		{"quotes with need", `"a..b"@docomo.example`, `"a..b"@docomo.example`, ""},
		{"international domain", "x@Bücher.example", "x@xn--bcher-kva.example", ""},
		{"A-label", "x@XN--BCHER-KVA.example", "x@xn--bcher-kva.example", ""},
		{"ideographic full stop", "x@例え。テスト", "x@xn--r8jz45g.xn--zckzah", ""},
		{"sharp s is a letter of its own", "x@straße.example", "x@xn--strae-oqa.example", ""},
		{"UTF-8 local part", "用户@example.net", "用户@example.net", ""},
		{"hyphens in the middle", "x@r3--sn.example", "x@r3--sn.example", ""},
		{"64 octets before the @", long(64, 20), long(64, 20), ""},
		{"254 octets", long(60, 193), long(60, 193), ""},
		{"digits in the last label of more than four", "x@1.2.3.4.5", "x@1.2.3.4.5", ""},

		{"empty", "", "", "is required"},
		{"no @", "bob", "", "it has no @"},
		{"nothing before", "@example.net", "", "nothing stands before the @"},
		{"nothing in quotes", `""@example.net`, "", "nothing stands before the @"},
		{"nothing after", "bob@", "", "nothing stands after the @"},
		{"two @", "a@b@example.net", "", "it contains @"},
		{"display name", "Bob <bob@example.net>", "", "it contains a space"},
		{"angle brackets", "<bob@example.net>", "", "it contains < or >"},
		{"injected parameter", "bob@example.net> SIZE=1", "", "it contains < or >"},
		{"space inside", "bo b@example.net", "", "it contains a space"},
		{"space in quotes", `"bo b"@example.net`, "", "it contains a space"},
		{"space at the end", "bob@example.net ", "", "it contains a space"},
		{"line break", "bob@example.net\r\nDATA", "", "it contains a space or a line break"},
		{"NUL", "bo\x00b@example.net", "", "it contains a control character"},
		{"DEL in the domain", "bob@exa\x7fmple.net", "", "it contains a control character"},
		{"no-break space", "bo\u00a0b@example.net", "", "it contains a space"},
		{"right-to-left override", "bo\u202eb@example.net", "", "it contains a control character"},
		{"not UTF-8", "b\xffb@example.net", "", "it is not UTF-8"},
		{"comma", "a,b@example.net", "", "it contains ,"},
		{"comment", "bob(x)@example.net", "", "it contains ("},
		{"dot at the end", "bob.@example.net", "", "starts or ends with a dot"},
		{"two dots", "a..b@example.net", "",
			"the part before the @ starts or ends with a dot, or has two dots in a row"},
		{"domain literal", "bob@[192.0.2.1]", "", "the domain can't be an IP address"},
		{"IPv4 as a name", "bob@192.0.2.1", "", "its domain is not a valid name"},
		{"empty label", "bob@example..net", "", "its domain is not a valid name"},
		{"dot at the end of the domain", "bob@example.net.", "", "its domain is not a valid name"},
		{"underscore", "bob@ex_ample.net", "", "its domain is not a valid name"},
		{"hyphen at an end", "bob@-example.net", "", "its domain is not a valid name"},
		{"bad A-label", "bob@xn--0.example", "", "its domain is not a valid name"},
		{"label of 64", "bob@" + strings.Repeat("d", 64) + ".net", "", "its domain is not a valid name"},
		{"65 octets before the @", long(65, 20), "", "longer than 64 octets"},
		{"255 octets", long(61, 193), "", "longer than 254 octets"},
		{"a megabyte", strings.Repeat("x", 1<<20) + "@example.net", "", "longer than 254 octets"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := message.NormalizeAddress(row.in)
			if row.err == "" {
				if err != nil || got != row.want {
					t.Errorf("got %q, %v; want %q", got, err, row.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("got %q, %v; want an error with %q", got, err, row.err)
			}
		})
	}
}

func TestNeedsSMTPUTF8(t *testing.T) {
	if message.NeedsSMTPUTF8("x@xn--bcher-kva.example") {
		t.Error("an A-label needs no SMTPUTF8")
	}
	if !message.NeedsSMTPUTF8("用户@example.net") {
		t.Error("a local part in UTF-8 needs SMTPUTF8")
	}
}

func TestDedupeAddresses(t *testing.T) {
	got := message.DedupeAddresses([]string{"b@x.example", "a@x.example", "b@X.Example", "B@x.example",
		`"b"@x.example`, "not one", "not one"})
	want := []string{"b@x.example", "a@x.example", "B@x.example", "not one"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseAddressList(t *testing.T) {
	for _, row := range []struct {
		name, in string
		want     []message.Address
	}{
		{"nothing", "  ", nil},
		{"one", "bob@example.net", []message.Address{{Address: "bob@example.net"}}},
		{"names", `Bob <b@x.example>, "Doe, \"J\"" <j@x.example>`, []message.Address{
			{Name: "Bob", Address: "b@x.example"}, {Name: `Doe, "J"`, Address: "j@x.example"}}},
		{"folded", "Bob\r\n <b@x.example>,\r\n\tc@x.example", []message.Address{
			{Name: "Bob", Address: "b@x.example"}, {Address: "c@x.example"}}},
		{"group", "Friends: a@x.example, B <b@x.example>;, c@x.example", []message.Address{{Address: "a@x.example"},
			{Name: "B", Address: "b@x.example"}, {Address: "c@x.example"}}},
		{"empty group", "undisclosed-recipients:;", nil},
		{"empty group with a blank", "undisclosed recipients: ;", nil},
		{"encoded words", "=?utf-8?q?J=C3=BCrgen?= =?utf-8?q?_M?= <j@x.example>", []message.Address{
			{Name: "Jürgen M", Address: "j@x.example"}}},
		{"encoded word of another charset", "=?windows-1251?B?z/Do4uXy?= <p@x.example>", []message.Address{
			{Name: "Привет", Address: "p@x.example"}}},
		{"encoded word of an unknown charset", "=?x-klingon?Q?abc?= <k@x.example>", []message.Address{
			{Name: "abc", Address: "k@x.example"}}},
		{"comment", "b@x.example (Bob)", []message.Address{{Name: "Bob", Address: "b@x.example"}}},
		{"comment first", "(Bob) b@x.example", []message.Address{{Address: "b@x.example"}}},
		{"address as its own name", "b@x.example <b@x.example>, c@x.example", []message.Address{
			{Name: "b@x.example", Address: "b@x.example"}, {Address: "c@x.example"}}},
		{"brackets without quotes", "Team [A] <a@x.example>, \"C, D\" <c@x.example> (x),", []message.Address{
			{Name: "Team [A]", Address: "a@x.example"}, {Name: "C, D", Address: "c@x.example"}}},
		{"Latin-1", "J\xfcrgen <j@x.example>", []message.Address{{Name: "J\uFFFDrgen", Address: "j@x.example"}}},
		{"quoted local part", `"a b"@x.example`, []message.Address{{Address: `"a b"@x.example`}}},
		{"local part with dots", `"a..b"@x.example`, []message.Address{{Address: `"a..b"@x.example`}}},
		{"UTF-8", "用户 <用户@x.example>", []message.Address{{Name: "用户", Address: "用户@x.example"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := message.ParseAddressList(row.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, in := range []string{"a@", "Doe, John <j@x.example>", "<", "a b", "Friends: a@x.example",
		"a <b <c@x.example>> d", "a@x.example <evil@x.example", "Team [A]; all, <c@x.example>"} {
		if got, err := message.ParseAddressList(in); err == nil ||
			!strings.HasPrefix(err.Error(), "is not a list of addresses: ") {
			t.Errorf("%q gives %v, %v; want an error", in, got, err)
		}
	}
}
