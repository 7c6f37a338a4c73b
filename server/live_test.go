package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// sendLive returns the answer of an event stream to a request, and how long it took.
func sendLive(ctx context.Context, method string, l live) (*httptest.ResponseRecorder, time.Duration, error) {
	start, rec := time.Now(), httptest.NewRecorder()
	err := l.send(echo.New().NewContext(httptest.NewRequestWithContext(ctx, method, "/", nil), rec))
	return rec, time.Since(start), err
}

// counting is a stream of numbers up to the last one.
func counting(last int) live {
	n := 0
	return live{func(context.Context) (any, bool, error) {
		n++
		return &api.CampaignStats{Campaign: "c", Run: n}, n != last, nil
	}}
}

func TestLiveHasAnEventEachSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec, took, err := sendLive(t.Context(), http.MethodGet, counting(3))
		if err != nil || took != 2*time.Second || rec.Header().Get("Content-Type") != "text/event-stream" ||
			!rec.Flushed {
			t.Errorf("%v after %s, %v", err, took, rec.Header())
		}
		event := func(n int) string {
			return "data: " + marshal(t, api.CampaignStats{Campaign: "c", Run: n, Runs: []api.CampaignRunStats{},
				Links: []api.CampaignLink{},
				Hours: []api.CampaignHour{}, Domains: []api.CampaignDomain{}}) + "\n\n"
		}
		if want := event(1) + event(2) + event(3); rec.Body.String() != want {
			t.Errorf("got %q, want %q", rec.Body, want)
		}
	})
}

// TestLiveEnds: when the client leaves, after its time, and for a client that asks for the headers only.
func TestLiveEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		if _, took, err := sendLive(ctx, http.MethodGet, counting(0)); err != nil || took != 90*time.Second {
			t.Errorf("the client left: %v after %s", err, took)
		}
		if _, took, err := sendLive(t.Context(), http.MethodGet, counting(0)); err != nil || took != liveTime {
			t.Errorf("of a client that stays: %v after %s", err, took)
		}
		if rec, took, err := sendLive(t.Context(), http.MethodHead, counting(0)); err != nil || took != 0 ||
			rec.Code != http.StatusOK {
			t.Errorf("HEAD: %v after %s, %d", err, took, rec.Code)
		}
	})
}

func TestLiveRefusesBeforeItsFirstEvent(t *testing.T) {
	t.Parallel()
	rec, _, err := sendLive(t.Context(), http.MethodGet, live{func(context.Context) (any, bool, error) {
		return nil, false, fault.New(fault.NotFound, "CampaignNotFound", "There is no such campaign")
	}})
	if !fault.Is(err, fault.NotFound) || rec.Body.Len() > 0 {
		t.Errorf("%v, %s", err, rec.Body)
	}
}
