package apptest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api/event"
)

// Receiver keeps the webhooks it gets.
type Receiver struct {
	*httptest.Server
	Mu   sync.Mutex
	Got  []Hook
	more chan struct{}
}

type Hook struct {
	Event event.Type    `json:"event"`
	Data  event.Message `json:"data"`
}

func Receive(t *testing.T) *Receiver {
	r := &Receiver{more: make(chan struct{}, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var h Hook
		if err != nil || json.Unmarshal(body, &h) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Mu.Lock()
		r.Got = append(r.Got, h)
		r.Mu.Unlock()
		r.more <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

// Wait waits for the first webhook of a type.
func (r *Receiver) Wait(t *testing.T, kind event.Type) event.Message {
	t.Helper()
	late := time.After(Patience)
	for {
		r.Mu.Lock()
		i := slices.IndexFunc(r.Got, func(h Hook) bool { return h.Event == kind })
		if i >= 0 {
			defer r.Mu.Unlock()
			return r.Got[i].Data
		}
		r.Mu.Unlock()
		select {
		case <-r.more:
		case <-late:
			t.Fatalf("no %s within %s", kind, Patience)
		}
	}
}

// About returns how many messages of a set have a webhook of a type.
func (r *Receiver) About(kind event.Type, ids map[string]bool) int {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	told := map[string]bool{}
	for _, h := range r.Got {
		if h.Event == kind && ids[h.Data.QueueID] {
			told[h.Data.QueueID] = true
		}
	}
	return len(told)
}
