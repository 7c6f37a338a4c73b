package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/postroom/postroom/api"
)

// TestDigestTablesAreNarrow: what strangers write makes no line longer than a small terminal.
func TestDigestTablesAreNarrow(t *testing.T) {
	t.Parallel()
	long, at := strings.Repeat("wide ", 60), noon.Add(72*time.Hour)
	var plain bytes.Buffer
	con := &console{out: &plain}
	for name, g := range map[string]grid{
		"runs": digestRunsGrid([]api.DigestRun{{Run: strings.Repeat("a", 26), Recipient: long,
			State: "processing", Events: 12345, Reason: long, Scheduled: at}}, noon),
	} {
		plain.Reset()
		con.show(g)
		for line := range strings.Lines(plain.String()) {
			if width := lipgloss.Width(strings.TrimRight(line, "\n")); width > 80 {
				t.Errorf("%s: a line of %d cells: %s", name, width, line)
			}
		}
	}
}

// TestManyEventsGoInBatches: a long file is handed over a thousand events at a time, and fewer if they are
// large. After an error the rest of it goes on from the line that is told.
func TestManyEventsGoInBatches(t *testing.T) {
	t.Parallel()
	var sizes []int
	failAt := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req api.DigestEventsRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		if sizes = append(sizes, len(req.Events)); len(sizes) == failAt {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		answer := api.DigestEventsAnswer{}
		for range req.Events {
			answer.Events = append(answer.Events, api.DigestEventResult{Success: true, State: "waiting"})
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	file := func(n, size int) *strings.Reader {
		line := fmt.Sprintf(`{"recipient":"ann","title":%q}`+"\n", strings.Repeat("x", size))
		return strings.NewReader(strings.Repeat(line, n))
	}
	s := &session{Context: context.Background(), client: api.NewClient(server.URL, "", nil)}
	for _, tc := range []struct {
		name          string
		n, size, skip int
		failAt        int
		want          []int
		done          int
	}{
		{"many", 2500, 10, 0, 0, []int{1000, 1000, 500}, 2500},
		{"exactly a batch", 1000, 10, 0, 0, []int{1000}, 1000},
		{"large ones", 200, 70_000, 0, 0, []int{99, 99, 2}, 200},
		{"the rest", 2500, 10, 2000, 0, []int{500}, 2500},
		{"an error", 2500, 10, 0, 2, []int{1000, 1000}, 1000},
		{"nothing", 0, 0, 0, 0, nil, 0},
	} {
		sizes, failAt = nil, tc.failAt
		b := eventBatch{}
		err := b.send(s, file(tc.n, tc.size), tc.skip)
		if (err != nil) != (tc.failAt > 0) || !slices.Equal(sizes, tc.want) || b.done != tc.done {
			t.Errorf("%s: %v, batches of %v, %d lines done", tc.name, err, sizes, b.done)
		}
	}
	if err := (&eventBatch{}).send(s, file(1, lineBytes), 0); err == nil ||
		!strings.Contains(err.Error(), "line 1 is longer") {
		t.Errorf("a line that is too long: %v", err)
	}
}
