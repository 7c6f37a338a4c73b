package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
)

// exerciseDigests mails a digest of more events than are kept one by one, and lets others wait.
func exerciseDigests(t *testing.T, client *api.Client) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := api.CreateDigestKind.Do(ctx, client, api.DigestKind{Category: "comment"})
	must(err)
	event := func(i int) api.DigestEvent {
		return api.DigestEvent{Recipient: "u1", Email: "digest@example.net", Category: "comment",
			EntityType: "post", EntityID: fmt.Sprint(i % 3), Title: "A post",
			Actor:          &api.DigestActor{ID: fmt.Sprint("a", i)},
			IdempotencyKey: fmt.Sprint("k", i)}
	}
	hand := func(from, until int) {
		t.Helper()
		var list []api.DigestEvent
		for i := from; i < until; i++ {
			list = append(list, event(i))
		}
		_, err := api.TakeDigestEvents.Do(ctx, client, api.DigestEventsRequest{Events: list})
		must(err)
	}
	hand(0, 8)
	sent, err := api.SendDigest.Do(ctx, client, api.DigestAccount{}, "u1")
	must(err)
	eventually(t, "the digest was sent", func() bool {
		run, err := api.GetDigestRun.Do(ctx, client, sent.Run)
		return err == nil && run.State == api.DigestSent && run.Events == 8
	})
	hand(8, 16)
	later := time.Now().Add(time.Hour)
	_, err = api.PatchDigestRecipient.Do(ctx, client, api.DigestRecipientRequest{PausedUntil: &later}, "u1")
	must(err)
}

// TestAPreviewNamesVariablesThatDoNotExist, and fills digest as well as params.digest.
func TestAPreviewNamesVariablesThatDoNotExist(t *testing.T) {
	t.Parallel()
	a := start(t, map[string]string{"redis.url": testredis.URL(t), "smtp": "smtp://127.0.0.1:1",
		"from": "Shop <shop@example.com>"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	_, err := api.CreateTemplate.Do(t.Context(), client, api.TemplateRequest{ID: "digest", Name: "Digest",
		TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Subject: "News",
			Text: "{{digest.total}} of {{params.digest.total}}{{digest.sum}}"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.TakeDigestEvents.Do(t.Context(), client, api.DigestEventsRequest{DigestEvent: api.DigestEvent{
		Recipient: "u1", Email: "ann@example.com", Category: "comment", EntityType: "post", EntityID: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := api.PreviewDigest.Do(t.Context(), client, api.DigestAccount{}, "u1")
	if err != nil || strings.TrimSpace(got.Text) != "1 of 1" || len(got.Missing) != 1 ||
		got.Missing[0].Name != "digest.sum" {
		t.Errorf("%+v, %v; want 1 of 1, and that digest.sum is missing", got, err)
	}
}
