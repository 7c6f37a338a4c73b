package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/postroom/postroom/accounts/dkim"
)

func TestDKIMCheck(t *testing.T) {
	text, err := dkim.Generate(dkim.Ed25519, 0)
	if err != nil {
		t.Fatal(err)
	}
	key, err := dkim.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	record, err := dkim.Record(key)
	if err != nil {
		t.Fatal(err)
	}
	const name = "s1._domainkey.example.com."
	for _, tc := range []struct {
		name    string
		zone    zone
		problem string
		fails   string
	}{
		{"published", zone{txt: map[string][]string{name: {record}}}, "", ""},
		{"not published", zone{}, "has no TXT record: publish", ""},
		{"twice", zone{txt: map[string][]string{name: {record, record}}}, "has 2 TXT records", ""},
		{"another key", zone{txt: map[string][]string{
			name: {"v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}}}, "publishes another key",
			""},
		{"revoked", zone{txt: map[string][]string{name: {"v=DKIM1; p="}}}, "is revoked", ""},
		{"a closed network", zone{closed: true}, "", "not checked, because the DNS"},
		{"a broken server", zone{broken: map[string]bool{name: true}}, "", "not checked, because the DNS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found, err := dkimName{Domain: "example.com", Selector: "s1"}.look(t.Context(), tc.zone, key)
			if (err != nil) != (tc.fails != "") || err != nil && !strings.HasPrefix(err.Error(), tc.fails) {
				t.Errorf("%v, want %q", err, tc.fails)
			}
			if !strings.HasPrefix(found.Problem, tc.problem) || (found.Problem == "") != (tc.problem == "") {
				t.Errorf("%q, want %q", found.Problem, tc.problem)
			}
		})
	}
}

func TestDKIMNamesAreCheckedFirst(t *testing.T) {
	for _, n := range []dkimName{{"localhost", "s1"}, {"example.com", "a b"}} {
		if _, err := n.checked(); err == nil {
			t.Errorf("%+v passes", n)
		} else if _, ok := errors.AsType[*usageError](err); !ok {
			t.Errorf("%v is no usage error", err)
		}
	}
}
