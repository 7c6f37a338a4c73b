package records

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// version reads the version of the records.
func (b bundle) version(t *testing.T) string {
	t.Helper()
	v, err := b.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPutAtAndDeleteAtHoldAsLongAsNothingChanged(t *testing.T) {
	b := setup(t, nil)
	state := func() []string {
		t.Helper()
		got, err := b.State(t.Context(), []Field{{"a", "1"}, {"a", "2"}, {"b", "1"}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	put := func(version, id, name string, fields map[string]string) bool {
		t.Helper()
		stored, err := b.PutAt(t.Context(), version, id, thing{Name: name}, fields)
		if err != nil {
			t.Fatal(err)
		}
		if stored != nil && (stored.ID != id || stored.Value.Name != name ||
			!stored.Updated.Equal(testkit.ClockStart)) {
			t.Errorf("%+v", stored)
		}
		return stored != nil
	}
	first := b.version(t)
	if !put(first, "a", "one", map[string]string{"1": "x", "2": "y"}) {
		t.Error("nothing had changed")
	}
	if put(first, "a", "two", map[string]string{"1": "lost"}) ||
		put(first, "b", "new", map[string]string{"1": "lost"}) {
		t.Error("another record was changed since")
	}
	if diff := cmp.Diff([]string{"x", "y", ""}, state()); diff != "" {
		t.Error(diff)
	}
	second := b.version(t)
	if !put(second, "a", "two", map[string]string{"1": ""}) {
		t.Error("nothing had changed")
	}
	if diff := cmp.Diff([]string{"", "y", ""}, state()); diff != "" {
		t.Error(diff)
	}
	if r := b.get(t, "a"); r.Value.Name != "two" || !r.Created.Equal(testkit.ClockStart) {
		t.Errorf("%+v", r)
	}
	if done, err := b.DeleteAt(t.Context(), second, "a"); done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
	if done, err := b.DeleteAt(t.Context(), b.version(t), "a"); !done || err != nil || b.get(t, "a") != nil {
		t.Errorf("%t, %v", done, err)
	}
	if diff := cmp.Diff([]string{"", "", ""}, state()); diff != "" {
		t.Error(diff)
	}
	if done, err := b.DeleteAt(t.Context(), "", "a:b"); !done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
}

func TestOfManyAtOnceOneIsFirst(t *testing.T) {
	b := setup(t, nil)
	version := b.version(t)
	var wg sync.WaitGroup
	won := make(chan string, 8)
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		wg.Go(func() {
			stored, err := b.PutAt(t.Context(), version, id, thing{Name: id}, nil)
			if err != nil {
				t.Error(err)
			} else if stored != nil {
				won <- id
			}
		})
	}
	wg.Wait()
	close(won)
	if id := <-won; b.get(t, id) == nil || len(won) != 0 {
		t.Errorf("%s and %d others were first", id, len(won))
	}
}

func TestTogetherWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := process(t, server.URL(), testkit.Ring(t, "secret"), nil)
	server.Kill()
	_, version := b.Version(t.Context())
	_, put := b.PutAt(t.Context(), "0", "a", thing{}, nil)
	_, remove := b.DeleteAt(t.Context(), "0", "a")
	_, state := b.State(t.Context(), []Field{{"a", "1"}})
	for name, err := range map[string]error{"version": version, "put": put, "delete": remove, "state": state} {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
