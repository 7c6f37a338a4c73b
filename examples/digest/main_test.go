package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/postroom/postroom/app/apptest"
)

// TestEachReaderGetsOneMail runs the program twice: the second time there is nothing new to mail.
func TestEachReaderGetsOneMail(t *testing.T) {
	p := apptest.Start(t, map[string]string{"serviceUrl": "https://mail.example.com"})
	for _, want := range [][]string{
		{"example-ann is mailed every", "08:00 (Europe/Zurich)", "comment-91 for example-ann: waiting\n",
			"comment-93 for example-ben: waiting\n", "example-ann would get: ",
			"example-ann got 3 events in 2 lines\n", "example-ben got 1 events in 1 lines\n"},
		{"comment-91 for example-ann: waiting\n", "example-ann gets no mail: empty\n",
			"example-ben gets no mail: empty\n"},
	} {
		var out bytes.Buffer
		if err := parse([]string{"-url", p.URL, "-token", p.Token}, &out).run(t.Context()); err != nil {
			t.Fatalf("%v after\n%s", err, out.String())
		}
		for _, part := range want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("no %q in\n%s", part, out.String())
			}
		}
	}
	p.Relay.Wait(2)
	to := map[string]string{}
	for _, m := range p.Relay.Messages() {
		to[m.To[0]] += string(m.Data)
	}
	for address, title := range map[string]string{"ann@example.net": "Spring in Bern",
		"ben@example.net": "A walk by the Aare"} {
		if !strings.Contains(to[address], title) {
			t.Errorf("the mail to %s has no %q:\n%s", address, title, to[address])
		}
	}
	if n := p.Relay.Count(); n != 2 {
		t.Errorf("the relay has %d mails, want 2", n)
	}
}
