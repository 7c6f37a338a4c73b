package webhooks

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
)

// replayTask is the task of the replay in the background.
func (b *bundle) replayTask() queue.Task {
	b.t.Helper()
	for id, task := range b.spool.tasks {
		if strings.HasPrefix(id, "replay.") {
			return task
		}
	}
	b.t.Fatal("there is no task of a replay")
	return queue.Task{}
}

func (b *bundle) replayed(endpoint string) api.EndpointReplayState {
	b.t.Helper()
	s, err := b.ReplayState(b.t.Context(), endpoint)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func TestReplayInTheBackground(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep, before := b.endpoint(answering(t, 200).URL), b.clock().Add(-time.Minute)
	if _, err := b.ReplayState(t.Context(), ep.ID); fault.CodeOf(err) != "ReplayNotFound" {
		t.Errorf("before any: %v", err)
	}
	for i := range replayChunk + 3 {
		b.emit("E"+strconv.Itoa(i), event.MessageSent, "snd")
	}
	if err := b.StartReplay(t.Context(), ep.ID, before); err != nil {
		t.Fatal(err)
	}
	if s := b.replayed(ep.ID); s.State != "running" || s.Progress != 0 || s.Replayed != 0 {
		t.Errorf("at its start: %+v", s)
	}
	if err := b.StartReplay(t.Context(), ep.ID, before); fault.CodeOf(err) != "ReplayInProgress" {
		t.Errorf("a second one: %v", err)
	}
	if _, err := b.Replay(t.Context(), ep.ID, before); fault.CodeOf(err) != "ReplayInProgress" {
		t.Errorf("one that waits: %v", err)
	}
	time.Sleep(2 * time.Millisecond) // the next event is of a later millisecond than the start
	b.emit("late", event.MessageSent, "snd")
	task := b.replayTask()
	for range 2 { // a task that runs twice replays once
		if v := b.ContinueReplay(t.Context(), task).String(); v != "done" {
			t.Fatalf("verdict %s", v)
		}
	}
	s := b.replayed(ep.ID)
	if s.State != "done" || s.Progress != 100 || s.Replayed != replayChunk+3 || s.Ended == nil ||
		s.Reached == nil {
		t.Errorf("at its end: %+v", s)
	}
	if page, err := b.Deliveries(t.Context(), ep.ID, 0, 1); err != nil || page.Total != replayChunk+3 {
		t.Errorf("%d deliveries, %v", page.Total, err)
	}
	if err := b.StartReplay(t.Context(), ep.ID, before); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestReplayWaitsForRoomAndGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *Options) { o.MaxPending = 2 })
	ep := b.endpoint(answering(t, 200).URL)
	for _, id := range []string{"E1", "E2", "E3"} {
		b.emit(id, event.MessageSent, "snd")
	}
	if err := b.StartReplay(t.Context(), ep.ID, b.clock().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	task := b.replayTask()
	if v := b.ContinueReplay(t.Context(), task).String(); v != "not_now" {
		t.Fatalf("without room: %s", v)
	}
	if s := b.replayed(ep.ID); s.State != "running" || s.Replayed != 0 {
		t.Errorf("without room: %+v", s)
	}
	page, err := b.Deliveries(t.Context(), ep.ID, 0, 10)
	if err != nil || len(page.Deliveries) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, d := range page.Deliveries {
		b.run(ep.ID, d.ID)
	}
	if v := b.ContinueReplay(t.Context(), task).String(); v != "done" {
		t.Fatalf("with room: %s", v)
	}
	if s := b.replayed(ep.ID); s.State != "done" || s.Replayed != 3 {
		t.Errorf("with room: %+v", s)
	}
	if page, err := b.Deliveries(t.Context(), ep.ID, 0, 10); err != nil || page.Total != 3 {
		t.Errorf("%d deliveries, %v", page.Total, err)
	}
}

func TestReplayStopsWithItsEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 200).URL)
	b.emit("E1", event.MessageSent, "snd")
	if err := b.StartReplay(t.Context(), ep.ID, b.clock().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	off := false
	if _, err := b.Patch(t.Context(), ep.ID, api.EndpointPatch{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	if v := b.ContinueReplay(t.Context(), b.replayTask()).String(); v != "done" {
		t.Fatalf("verdict %s", v)
	}
	if s := b.replayed(ep.ID); s.State != "stopped" || !strings.Contains(s.Error, "was disabled") {
		t.Errorf("got %+v", s)
	}
	if err := b.StartReplay(t.Context(), ep.ID, b.clock()); fault.CodeOf(err) != "WebhookEndpointDisabled" {
		t.Errorf("of an endpoint that is off: %v", err)
	}
}

func TestReplayWhoseTaskIsGoneIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 200).URL)
	if err := b.StartReplay(t.Context(), ep.ID, b.clock().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	b.advance(replayLock + 2*replayPause)
	if s := b.replayed(ep.ID); s.State != "interrupted" {
		t.Errorf("got %+v", s)
	}
	if v := b.ContinueReplay(t.Context(), queue.Task{ID: "x", Payload: []byte("{}")}).String(); v != "bury" {
		t.Errorf("a task of nothing: %s", v)
	}
}
