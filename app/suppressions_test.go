package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

// exerciseSuppressions creates entries of all sorts, imports a file, and counts a soft bounce.
func exerciseSuppressions(t *testing.T, client *api.Client, db *redisdb.DB) {
	t.Helper()
	ctx, soon := t.Context(), time.Now().Add(time.Hour)
	if _, err := api.AddSuppressions.Do(ctx, client, api.SuppressionRequest{Suppressions: []api.NewSuppression{
		api.NewSuppression{Email: "gone@example.com", Expires: &soon, Response: "said so"}, api.NewSuppression{
			Domain: "gone.example", Reason: "spam_report", SuppressionScope: api.SuppressionScope{
				Account: "shop", List: "news"}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ImportSuppressions.Do(ctx, client, strings.NewReader("email\nunheard@example.com\n"),
		api.SuppressionImportOptions{}); err != nil {
		t.Fatal(err)
	}
	store, err := suppression.New(db, suppression.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Soft(ctx, suppression.Entry{Address: "full@example.com", MessageID: "m"},
		time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Confirmed(ctx, suppression.Entry{Address: "dead@example.com", Account: "shop",
		Reason: suppression.HardBounce, MessageID: "m"}, time.Now()); err != nil {
		t.Fatal(err)
	}
}
