package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// TestColumnsThatMeanNothingAreToldBeforeTheImport, at a terminal, and nothing is imported without a yes.
func TestColumnsThatMeanNothingAreToldBeforeTheImport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.csv")
	text := "email,Phone\n" + strings.Repeat("ann@example.net,123\n", 5000)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]struct {
		code, imported int
		flag           string
	}{"n\n": {code: 1}, "y\n": {imported: len(text)}, "": {imported: len(text), flag: "--yes"}} {
		imported := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Method == http.MethodPost && r.URL.Query().Get("dryRun") != "true" {
				imported = len(body)
			}
			_ = json.NewEncoder(w).Encode(api.SubscriberImport{ID: "x", State: "done", Ignored: []string{"Phone"}})
		}))
		defer server.Close()
		var out, errs bytes.Buffer
		con := &console{in: strings.NewReader(answer), out: &out, err: &errs, inTTY: true, errTTY: true}
		args := []string{"subscribers", "import", file, "--consent", "x", "--url", server.URL, "--token", "x"}
		if want.flag != "" {
			args = append(args, want.flag)
		}
		code := run(t.Context(), args, con)
		if code != want.code || imported != want.imported || !strings.Contains(errs.String(),
			"columns that mean nothing: Phone") {
			t.Errorf("%q: code %d, %d bytes imported: %s", answer, code, imported, errs.String())
		}
	}
}
