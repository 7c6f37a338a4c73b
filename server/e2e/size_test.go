package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

// TestTheLargestMessage: a message of exactly message.maxSize is accepted over every protocol. One octet more
// is refused, with the limit.
func TestTheLargestMessage(t *testing.T) {
	const limit = 300_000 // larger than any single buffer
	a, relay, _ := startInlet(t, map[string]string{"message.maxSize": fmt.Sprint(limit)})
	client := api.NewClient(a.URL(), a.Token(), nil)
	arrived := 0
	for _, door := range []struct {
		name string
		send func(size int) error
	}{
		{"fields", func(size int) error { return submitFields(t, client, size) }},
		{"raw", func(size int) error {
			_, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{Raw: rawMessage(size)})
			return err
		}},
		{"SMTP", func(size int) error { return apptest.SendSMTP(a, rawMessage(size)) }},
	} {
		if err := door.send(limit); err != nil {
			t.Errorf("%s: %v", door.name, err)
			continue
		}
		arrived++
		if got := relay.Wait(arrived)[arrived-1]; len(got.Data) != limit {
			t.Errorf("%s: %d octets arrived", door.name, len(got.Data))
		}
		err := door.send(limit + 1)
		if !strings.Contains(fmt.Sprint(err), fmt.Sprintf("the limit is %d", limit)) {
			t.Errorf("%s, one octet more: %v", door.name, err)
		}
		if door.name == "SMTP" {
			if e, ok := errors.AsType[*textproto.Error](err); !ok || e.Code != 552 ||
				!strings.HasPrefix(e.Msg, "5.3.4 ") {
				t.Errorf("%s, one octet more: %v", door.name, err)
			}
		} else if f, ok := errors.AsType[*api.Failure](err); !ok ||
			f.Problem.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s, one octet more: %v", door.name, err)
		}
	}
	if relay.Count() != arrived {
		t.Errorf("%d messages arrived, want %d", relay.Count(), arrived)
	}
}

// rawMessage returns a complete message of the given size in lines of 50 octets: nothing is added to it.
func rawMessage(size int) []byte {
	const head = "From: shop@example.com\r\nTo: ann@example.net\r\nSubject: large\r\nDate: Mon, 02 Jan 2006 15:04:05 +0000\r\n" +
		"Message-ID: <1@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\n"
	room := size - len(head)
	last := 2 + (room-2)%50 // octets of the last line, with its CRLF
	return []byte(head + strings.Repeat(strings.Repeat("x", 48)+"\r\n", (room-last)/50) + strings.Repeat("x",
		last-2) + "\r\n")
}

// submitFields submits a composed message of the given size. A dry run returns the size.
func submitFields(t *testing.T, client *api.Client, size int) error {
	t.Helper()
	req := api.SubmitRequest{To: api.Addresses{{Address: "ann@example.net"}}, Subject: "large",
		MessageID: "<2@example.com>", DryRun: true}
	lines := func(n int) string {
		return strings.Repeat(strings.Repeat("x", 48)+"\r\n", (n-1)/50) + strings.Repeat("x", (n-1)%50+1)
	}
	req.Text = lines(100)
	probe, err := api.Submit.Do(t.Context(), client, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Text, req.DryRun = lines(100+size-len(probe.Preview)), false
	_, err = api.Submit.Do(t.Context(), client, req)
	return err
}
