package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestEventsAreArchived: the events of a delivered message are written to the file of the day.
func TestEventsAreArchived(t *testing.T) {
	t.Parallel()
	relay, dir := testsmtp.Start(t, testsmtp.Options{}), t.TempDir()
	a := apptest.Run(t, map[string]string{"smtp": relay.URL(), "from": "shop@example.com", "archive.dir": dir})
	answer, err := api.Submit.Do(t.Context(), api.NewClient(a.URL(), a.Token(), nil), api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Text: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(apptest.Patience); ; time.Sleep(50 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(dir, "events-*.ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, f := range files { // two around midnight
			lines, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text += string(lines)
		}
		if strings.Contains(text, `"event":"messageQueued"`) && strings.Contains(text, `"event":"messageSent"`) &&
			strings.Contains(text, answer.QueueID) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the archive has %s", text)
		}
	}
}
