package webhooks

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/dialing"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	p := policy{attempts: 3, maxRetryAfter: time.Hour, delay: func(n int) time.Duration {
		return time.Duration(n) * 10 * time.Second
	}}
	refused := fmt.Errorf("dial tcp: %w: 10.0.0.1", dialing.ErrRefused)
	for _, row := range []struct {
		name    string
		reply   reply
		attempt int
		want    outcome
		wait    time.Duration
		gone    bool
	}{
		{"200", reply{status: 200}, 1, delivered, 0, false},
		{"204", reply{status: 204}, 1, delivered, 0, false},
		{"299", reply{status: 299}, 3, delivered, 0, false},
		{"301 is not followed, tried again", reply{status: 301}, 1, retrying, 20 * time.Second, false},
		{"304", reply{status: 304}, 2, retrying, 30 * time.Second, false},
		{"400 stops", reply{status: 400}, 1, failed, 0, false},
		{"401 stops", reply{status: 401}, 1, failed, 0, false},
		{"404 stops", reply{status: 404}, 1, failed, 0, false},
		{"408 is about time", reply{status: 408}, 1, retrying, 20 * time.Second, false},
		{"410 switches off", reply{status: 410}, 1, failed, 0, true},
		{"410 at the last attempt too", reply{status: 410}, 3, failed, 0, true},
		{"425 is about time", reply{status: 425}, 1, retrying, 20 * time.Second, false},
		{"429", reply{status: 429}, 1, retrying, 20 * time.Second, false},
		{"429 that asks for longer", reply{status: 429, retryAfter: time.Minute}, 1, retrying, time.Minute, false},
		{"429 that asks for less than we wait anyway", reply{status: 429, retryAfter: time.Second}, 1, retrying,
			20 * time.Second, false},
		{"503 that asks for a year", reply{status: 503, retryAfter: 365 * 24 * time.Hour}, 1, retrying, time.Hour,
			false},
		{"500", reply{status: 500}, 1, retrying, 20 * time.Second, false},
		{"500 before the last attempt", reply{status: 500}, 2, retrying, 30 * time.Second, false},
		{"500 at the last attempt", reply{status: 500}, 3, failed, 0, false},
		{"500 past the last attempt", reply{status: 500}, 4, failed, 0, false},
		{"599", reply{status: 599}, 1, retrying, 20 * time.Second, false},
		{"no answer", reply{err: errors.New("connection refused")}, 1, retrying, 20 * time.Second, false},
		{"no answer in time", reply{err: context.DeadlineExceeded}, 2, retrying, 30 * time.Second, false},
		{"no answer, last attempt", reply{err: errors.New("connection refused")}, 3, failed, 0, false},
		{"refused destination", reply{err: refused}, 1, failed, 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := p.decide(row.reply, row.attempt, now)
			if d.outcome != row.want || d.gone != row.gone {
				t.Errorf("got %s (gone %v), want %s (gone %v)", d.outcome, d.gone, row.want, row.gone)
			}
			if row.want == retrying && d.next.Sub(now) != row.wait {
				t.Errorf("waits %s, want %s", d.next.Sub(now), row.wait)
			}
			if row.want != retrying && !d.next.IsZero() {
				t.Errorf("no further attempt, yet one at %s", d.next)
			}
			if (d.err == nil) != (row.want == delivered) {
				t.Errorf("error %v for %s", d.err, row.want)
			}
		})
	}
}
