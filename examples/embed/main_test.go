package main

import (
	"context"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestQueuedMailSurvivesTheApplication queues a mail for later, stops, starts again on the same data, and
// finds it.
func TestQueuedMailSurvivesTheApplication(t *testing.T) {
	relay := testsmtp.Start(t, testsmtp.Options{})
	settings, err := config.Load(config.Sources{Flags: map[string]string{
		"http.listen": "127.0.0.1:0", "data": t.TempDir(), "smtp": relay.URL(), "from": "shop@example.com",
	}})
	if err != nil {
		t.Fatal(err)
	}
	var id string
	err = run(t.Context(), settings, func(ctx context.Context, mail *api.Client) error {
		if err := greet(ctx, mail, "ann@example.net"); err != nil {
			return err
		}
		if _, err := relay.WaitContext(ctx, 1); err != nil {
			return err
		}
		later := time.Now().Add(time.Hour)
		answer, err := api.Submit.Do(ctx, mail, api.SubmitRequest{To: api.Addresses{{Address: "ben@example.net"}},
			Text: "Later", SendAt: &later})
		id = answer.QueueID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), settings, func(ctx context.Context, mail *api.Client) error {
		m, err := api.GetMessage.Do(ctx, mail, id)
		if err == nil && m.State != api.Scheduled {
			t.Errorf("the message is %s after the restart, want scheduled", m.State)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
