package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestMailLeavesInOrderOfItsDueTime: with one connection, nobody passes the line of those that wait for it. A
// few places may be given away while workers race for a free connection: six take messages from the queue.
func TestMailLeavesInOrderOfItsDueTime(t *testing.T) {
	t.Parallel()
	const mails, takers = 20, 6
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "DOT" {
			return testsmtp.Action{Delay: 40 * time.Millisecond}
		}
		return testsmtp.Action{}
	}})
	a := apptest.Run(t, map[string]string{})
	client := api.NewClient(a.URL(), a.Token(), nil)
	silentRow{connections: 1}.gateways(t, client, "shop", "a", relay)
	pause := func(yes bool) {
		t.Helper()
		if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: &yes}, "submit"); err != nil {
			t.Fatal(err)
		}
	}
	pause(true)
	first := time.Now().Add(2 * time.Second)
	for n := range mails {
		n = (n + mails/2) % mails // those due later are submitted first
		at := first.Add(time.Duration(n) * 200 * time.Millisecond)
		req := mailFrom("", fmt.Sprintf("p%02d@example.net", n))
		req.Account, req.SendAt = "shop", &at
		if _, err := api.Submit.Do(t.Context(), client, req); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Eventually(t, "all are due", func() bool {
		page, err := api.ListOutbox.Do(t.Context(), client, api.OutboxQuery{State: api.Paused})
		return err == nil && page.Total == mails
	})
	pause(false)
	var left []string
	early := 0
	for at, m := range relay.Wait(mails) {
		left = append(left, m.To[0][1:3])
		var n int
		if _, err := fmt.Sscanf(m.To[0], "p%d@", &n); err != nil {
			t.Fatal(err)
		}
		if n > at+takers { // one that left late may have had a slow worker
			early++
		}
	}
	if early > takers {
		t.Errorf("%d mails passed the line: %s", early, strings.Join(left, " "))
	}
}
