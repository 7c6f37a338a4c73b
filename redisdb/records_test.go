package redisdb_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/redisdb"
)

// TestRecordsChange walks one record through all that can happen to it, and looks at its text, its state and the version after each step.
func TestRecordsChange(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), testredis.New(t)
	r := redisdb.NewRecords(db, "thing", "things", "redis.call('DEL', KEYS[4])")
	put := func(text, revision, read string, keep bool) func() (bool, error) {
		return func() (bool, error) {
			return r.Put(ctx, redisdb.Record{ID: "a", Text: text, Revision: revision}, read, keep)
		}
	}
	remove := func() (bool, error) { return r.Remove(ctx, "a") }
	steps := []struct {
		name    string
		do      func() (bool, error)
		done    bool
		text    string
		stateOf int64 // 1: a state that was there before the step is still there
		version string
	}{
		{"new", put("one", "r1", "", false), true, "one", 0, "1"},
		{"the same once more, as its answer was lost", put("one", "r1", "", false), true, "one", 1, "1"},
		{"as if it were new", put("two", "r2", "", false), false, "one", 1, "1"},
		{"changed", put("two", "r2", "r1", false), true, "two", 0, "2"},
		{"read too long ago", put("three", "r3", "r1", false), false, "two", 1, "2"},
		{"sealed anew", put("two again", "r3", "r2", true), true, "two again", 1, "3"},
		{"removed", remove, true, "", 0, "4"},
		{"removed twice", remove, false, "", 1, "4"},
		{"changed after it was removed", put("four", "r4", "r3", false), false, "", 1, "4"},
	}
	for _, step := range steps {
		if err := db.Client().HSet(ctx, r.StateKey("a"), "state", "seen").Err(); err != nil {
			t.Fatal(err)
		}
		done, err := step.do()
		if err != nil || done != step.done {
			t.Errorf("%s: %t, %v", step.name, done, err)
		}
		found, err := r.Load(ctx, "a")
		if err != nil || len(found) != 1 || found[0].Text != step.text || (found[0].Revision == "") != (step.text == "") {
			t.Errorf("%s: %+v, %v, want %q", step.name, found, err, step.text)
		}
		if n := db.Client().Exists(ctx, r.StateKey("a")).Val(); n != step.stateOf {
			t.Errorf("%s: %d states, want %d", step.name, n, step.stateOf)
		}
		if v := db.Client().Get(ctx, r.VersionKey()).Val(); v != step.version {
			t.Errorf("%s: version %s, want %s", step.name, v, step.version)
		}
	}
}

// TestRecordsLists reads pages and what follows an id, in the order of the alphabet whatever the order of writing.
func TestRecordsLists(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := redisdb.NewRecords(testredis.New(t), "thing", "things", "")
	for _, id := range []string{"c", "a", "d", "b"} {
		if done, err := r.Put(ctx, redisdb.Record{ID: id, Text: "text of " + id, Revision: "r"}, "", false); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	ids, total, err := r.Page(ctx, 1, 2)
	if diff := cmp.Diff([]string{"b", "c"}, ids); diff != "" || total != 4 || err != nil {
		t.Errorf("page: %s, %d in all, %v", diff, total, err)
	}
	for after, want := range map[string][]string{"": {"a", "b"}, "b": {"c", "d"}, "bb": {"c", "d"}, "d": {}} {
		got, err := r.After(ctx, after, 2)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("after %q: %s, %v", after, diff, err)
		}
	}
	found, err := r.Load(ctx, "d", "none", "a")
	want := []redisdb.Record{{ID: "d", Text: "text of d", Revision: "r"}, {ID: "none"}, {ID: "a", Text: "text of a", Revision: "r"}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("load: %s, %v", diff, err)
	}
	if none, err := r.Load(ctx); len(none) != 0 || err != nil {
		t.Errorf("load of nothing: %v, %v", none, err)
	}
}
