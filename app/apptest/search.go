package apptest

import (
	"context"
	"fmt"
	"testing"

	"github.com/postroom/postroom/api"
)

// Found returns how many messages a query finds; -1 if the search fails.
func Found(ctx context.Context, client *api.Client, q string) int {
	page, err := api.SearchDocuments.Do(ctx, client, api.DocumentQuery{Q: q})
	if err != nil {
		return -1
	}
	return page.Total
}

func Finds(t *testing.T, client *api.Client, q string, n int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%q finds %d", q, n), func() bool { return Found(t.Context(), client, q) == n })
}
