package archive

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// TestTheAuditLogIsKept: each entry as it was hashed, also where events are spread over partitions.
func TestTheAuditLogIsKept(t *testing.T) {
	t.Parallel()
	db := testredis.Open(t, redisdb.Options{Partitions: 3})
	log, err := audit.New(db, testkit.Ring(t, "secret"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wrote []api.AuditEntry
	for range 5 {
		e, err := log.Append(t.Context(), api.AuditEntry{Result: api.AuditDone, Action: "PUT /<x>",
			Who: api.AuditActor{Kind: "token", Account: "acme"}})
		if err != nil {
			t.Fatal(err)
		}
		wrote = append(wrote, e)
	}
	dir := t.TempDir()
	run(t, db, Options{Dir: dir})
	var lines [][]byte
	eventually(t, "five lines", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "events-*.ndjson"))
		lines = nil
		for _, name := range files {
			text, _ := os.ReadFile(name)
			lines = append(lines, bytes.Split(bytes.TrimSpace(text), []byte("\n"))...)
		}
		return len(lines) == 5
	})
	prev := ""
	for i, text := range lines {
		var l line
		var e api.AuditEntry
		if err := json.Unmarshal(text, &l); err != nil || json.Unmarshal([]byte(l.Data), &e) != nil {
			t.Fatal(err, string(text))
		}
		if l.Event != "audit" || l.Account != "acme" || l.Status != "done" || e.Seq != int64(i+1) ||
			e.Prev != prev {
			t.Errorf("%s", text)
		}
		prev = wrote[i].Hash
	}
	for _, key := range []string{redisdb.Key(1, audit.Stream), redisdb.Key(2, audit.Stream)} {
		if db.Client().Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s was made", key)
		}
	}
}
