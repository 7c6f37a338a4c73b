package provider

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"Ann@Example.COM":                  "Ann@example.com",
		" ann@example.com. ":               "ann@example.com",
		"Ann <ann@Example.com>":            "ann@example.com",
		`"Ann, B." <ann@example.com>`:      "ann@example.com",
		"<ann@example.com>":                "ann@example.com",
		"ann+tag@example.com":              "ann+tag@example.com",
		"ärger@Müller.example":             "ärger@müller.example",
		"not an address":                   "not an address",
		"invalid@invalid":                  "invalid@invalid",
		"a@b@Example.com":                  "a@b@example.com",
		"ann\r\nBcc: x@example.com":        "ann  Bcc: x@example.com",
		"ann\x00@example.com":              "ann @example.com",
		"\xff@example.com":                 "\uFFFD@example.com",
		"":                                 "",
		strings.Repeat("a", 2000) + "@b.c": strings.Repeat("a", 320),
	} {
		if got := address(in); strings.ReplaceAll(got, "\n", " ") != want {
			t.Errorf("address(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCleanCutsBetweenCharacters(t *testing.T) {
	for limit, want := range map[int]string{1: "a", 2: "a", 3: "aä", 4: "aä", 5: "aää", 9: "aää"} {
		if got := clean(" aää\x07", limit); got != want {
			t.Errorf("clean to %d bytes = %q, want %q", limit, got, want)
		}
	}
}

func TestMessageID(t *testing.T) {
	for in, want := range map[string]string{
		"a@b": "<a@b>", "<a@b>": "<a@b>", " <a@b> ": "<a@b>", "": "", "<>": "", "a b": "", "<a>b": "", "a\x00b": "",
		strings.Repeat("a", 1000): "",
	} {
		if got := messageID(in); got != want {
			t.Errorf("messageID(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWhen(t *testing.T) {
	at := time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)
	for _, c := range []struct {
		in   any
		want time.Time
	}{
		{json.Number("1700000000"), at},
		{"1700000000", at},
		{json.Number("1700000000000"), at},
		{json.Number("1.7e9"), at},
		{json.Number("1700000000.123456"), at.Add(123 * time.Millisecond)},
		{"2023-11-14T23:13:20+01:00", at},
		{json.Number("0"), time.Time{}},
		{json.Number("-1700000000"), time.Time{}},
		{json.Number("1e400"), time.Time{}},
		{json.Number("946684799"), time.Time{}},
		{json.Number("946684800"), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{json.Number("99999999999999999999999999"), time.Time{}},
		{"NaN", time.Time{}},
		{"Inf", time.Time{}},
		{"0001-01-01T00:00:00Z", time.Time{}},
		{"9999-12-31T00:00:00Z", time.Time{}},
		{"2023-11-14 22:13:20", time.Time{}},
		{true, time.Time{}},
		{nil, time.Time{}},
	} {
		if got := when(c.in); !got.Equal(c.want) {
			t.Errorf("when(%v) = %v, want %v", c.in, got, c.want)
		}
	}
}

func TestCodes(t *testing.T) {
	for _, c := range []struct {
		diagnostic string
		code       int
		enhanced   string
	}{
		{"550 5.1.1 no such user", 550, "5.1.1"},
		{"smtp; 550 5.1.1 <a@b>... User unknown", 550, "5.1.1"},
		{"smtp;550-5.1.1 no such user", 550, "5.1.1"},
		{"sent (250 2.0.0 OK 1498093527 x - gsmtp)", 250, "2.0.0"},
		{"RecipientError: 452 4.2.2", 452, "4.2.2"},
		{"5.1.1 The account does not exist", 0, "5.1.1"},
		{"The account does not exist (5.1.1).", 0, "5.1.1"},
		{"Unable to connect to 5.1.1.7", 0, ""},
		{"550 4.1.1 two minds", 550, ""},
		{"order 550123 is late", 0, ""},
		{"invalid", 0, ""},
		{strings.Repeat("x", 100) + " 550 5.1.1", 0, ""},
	} {
		e := Event{Diagnostic: c.diagnostic}
		e.fillCodes()
		if e.SMTPCode != c.code || e.Enhanced != c.enhanced {
			t.Errorf("%q: %d %q, want %d %q", c.diagnostic, e.SMTPCode, e.Enhanced, c.code, c.enhanced)
		}
	}
	e := Event{Diagnostic: "421 later", SMTPCode: 9999, Enhanced: "5.1.1; extra"}
	if e.fillCodes(); e.SMTPCode != 421 || e.Enhanced != "" {
		t.Errorf("codes of no kind became %d %q", e.SMTPCode, e.Enhanced)
	}
}
