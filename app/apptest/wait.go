package apptest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// HandIn submits a message. On a busy machine Redis may not answer a submit within its two seconds. Then
// Postroom answers 503, and HandIn tries again, with a key, so that there is one message.
func HandIn(t *testing.T, client *api.Client, req api.SubmitRequest) (answer api.SubmitAnswer) {
	t.Helper()
	req.IdempotencyKey = cmp.Or(req.IdempotencyKey, rand.Text())
	Eventually(t, "the message is accepted", func() bool {
		var err error
		answer, err = api.Submit.Do(t.Context(), client, req)
		f, ok := errors.AsType[*api.Failure](err)
		if busy := ok && f.Problem.StatusCode == http.StatusServiceUnavailable; err != nil && !busy {
			t.Fatal(err)
		}
		return err == nil
	})
	return answer
}

// Status returns the status of the answer that an error is made from, or 0.
func Status(err error) int {
	p, ok := errors.AsType[*api.Failure](err)
	if !ok {
		return 0
	}
	return p.Problem.StatusCode
}

// Empty waits until nothing is queued.
func Empty(t *testing.T, client *api.Client) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Log(last)
		}
	}()
	Eventually(t, "the outbox is empty", func() bool {
		page, err := api.ListOutbox.Do(t.Context(), client, api.OutboxQuery{})
		last = fmt.Sprintf("%v %+v", err, page)
		return err == nil && page.Total == 0
	})
}

func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", Patience, what)
		}
	}
}

func Connect(t *testing.T, url string) *redisdb.DB {
	t.Helper()
	db, err := redisdb.Open(t.Context(), redisdb.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close redis: %v", err)
		}
	})
	return db
}

// FailureCode returns the error code of an API answer.
func FailureCode(err error) string {
	if f, ok := errors.AsType[*api.Failure](err); ok {
		return f.Problem.Code
	}
	return ""
}

// Patience is the time limit of each wait, on a host that is busy with other tests.
const Patience = 3 * time.Minute
