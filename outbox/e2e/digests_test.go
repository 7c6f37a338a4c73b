package e2e_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
)

// TestAPreviewNamesVariablesThatDoNotExist, and fills digest as well as params.digest.
func TestAPreviewNamesVariablesThatDoNotExist(t *testing.T) {
	t.Parallel()
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": "smtp://127.0.0.1:1",
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
