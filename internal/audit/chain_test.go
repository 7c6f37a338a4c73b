package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
)

// values are the fields of a stored entry.
func values(t *testing.T, b bundle, id string) map[string]any {
	t.Helper()
	got, err := b.db.Client().XRange(t.Context(), streamKey(), id, id).Result()
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	return got[0].Values
}

// rewrite replaces all entries of the stream, as somebody can who writes to Redis.
func rewrite(t *testing.T, b bundle, change func([]redis.XMessage) []redis.XMessage) {
	t.Helper()
	c := b.db.Client()
	all, err := c.XRange(t.Context(), streamKey(), "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	c.Del(t.Context(), streamKey())
	for _, m := range change(all) {
		if err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: streamKey(), ID: m.ID,
			Values: m.Values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func forged(e api.AuditEntry, key string) map[string]any {
	e.Who.Name = "bob"
	e.Hash, e.Key, e.MAC = "", "", ""
	text, _ := json.Marshal(e)
	return map[string]any{"e": string(text), "h": hashOf(string(text)), "k": key, "m": "00"}
}

// TestTamperingIsNoticed: by a process that knows nothing but the secret, except where it says own.
func TestTamperingIsNoticed(t *testing.T) {
	cases := []struct {
		name   string
		own    bool // only the process that wrote the entries can know
		tamper func(t *testing.T, b bundle, all []api.AuditEntry)
	}{
		{"a word of an entry", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			rewrite(t, b, func(m []redis.XMessage) []redis.XMessage {
				m[3].Values["e"] = strings.Replace(m[3].Values["e"].(string), "ann", "bob", 1)
				return m
			})
		}},
		{"an entry and its hash", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			rewrite(t, b, func(m []redis.XMessage) []redis.XMessage {
				m[3].Values = forged(all[3], all[3].Key)
				return m
			})
		}},
		{"the last entry, its hash and the head", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			rewrite(t, b, func(m []redis.XMessage) []redis.XMessage {
				m[9].Values = forged(all[9], "ffffffff")
				b.db.Client().HSet(t.Context(), headKey(), "hash", m[9].Values["h"])
				return m
			})
		}},
		{"every entry, under an unknown key", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			rewrite(t, b, func(m []redis.XMessage) []redis.XMessage {
				prev := ""
				for i := range m {
					all[i].Prev = prev
					m[i].Values = forged(all[i], "ffffffff")
					prev = m[i].Values["h"].(string)
				}
				b.db.Client().HSet(t.Context(), headKey(), "hash", prev)
				return m
			})
		}},
		{"one entry deleted", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			b.db.Client().XDel(t.Context(), streamKey(), all[4].ID)
		}},
		{"the first entry deleted", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			b.db.Client().XDel(t.Context(), streamKey(), all[0].ID)
		}},
		{"a made-up checkpoint", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			b.db.Client().XDel(t.Context(), streamKey(), all[0].ID)
			b.db.Client().HSet(t.Context(), checkpointKey(), "seq", 1, "id", all[0].ID, "hash", all[0].Hash, "key",
				all[0].Key, "mac", all[0].MAC)
		}},
		{"two entries swapped", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			rewrite(t, b, func(m []redis.XMessage) []redis.XMessage {
				m[2].Values, m[3].Values = m[3].Values, m[2].Values
				return m
			})
		}},
		{"an entry twice", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			b.db.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: streamKey(), Values: values(t, b, all[5].ID)})
		}},
		{"an entry added", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			e := all[9]
			e.Seq, e.Prev = 11, all[9].Hash
			b.db.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: streamKey(), Values: forged(e, e.Key)})
		}},
		{"the tail cut", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			b.db.Client().XDel(t.Context(), streamKey(), all[8].ID, all[9].ID)
		}},
		{"the head deleted", false, func(t *testing.T, b bundle, all []api.AuditEntry) {
			b.db.Client().Del(t.Context(), headKey())
		}},
		{"the tail cut with its head", true, func(t *testing.T, b bundle, all []api.AuditEntry) {
			b.db.Client().XDel(t.Context(), streamKey(), all[8].ID, all[9].ID)
			b.db.Client().HSet(t.Context(), headKey(), "seq", 8, "id", all[7].ID, "hash", all[7].Hash)
		}},
		{"everything deleted", true, func(t *testing.T, b bundle, all []api.AuditEntry) {
			b.db.Client().Del(t.Context(), streamKey(), headKey())
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			b := setup(t, Options{})
			all := b.fill(t, 10)
			if v := b.another(t).verified(t); !v.Intact || v.Entries != 10 || v.Head.Hash != all[9].Hash {
				t.Fatalf("before: %+v", v)
			}
			tc.tamper(t, b, all)
			if v := b.verified(t); v.Intact {
				t.Errorf("the process that wrote it noticed nothing: %+v", v)
			}
			stranger := b.another(t)
			if v := stranger.verified(t); v.Intact != tc.own {
				t.Errorf("another process: %+v", v)
			}
			if ok, _ := stranger.Intact(); ok != tc.own {
				t.Errorf("intact: %t", ok)
			}
			// if the log alone does not show it, a noted head does
			v, err := stranger.Verify(t.Context(), api.AuditHead{Seq: 10, Hash: all[9].Hash})
			if err != nil || v.Intact {
				t.Errorf("with a noted head: %+v, %v", v, err)
			}
			b.fill(t, 1) // changes can still be made
			if v := b.verified(t); v.Intact {
				t.Error("one more entry makes it look intact")
			}
		})
	}
}

func TestANotedHeadIsFound(t *testing.T) {
	b := setup(t, Options{})
	all := b.fill(t, 5)
	for seq, want := range map[int64]bool{3: true, 5: true, 6: false} {
		v, err := b.Verify(t.Context(), api.AuditHead{Seq: seq, Hash: all[min(seq, 5)-1].Hash})
		if err != nil || v.Intact != want {
			t.Errorf("%d: %+v, %v", seq, v, err)
		}
	}
	if v, err := b.Verify(t.Context(), api.AuditHead{Seq: 3, Hash: all[3].Hash}); err != nil || v.Intact {
		t.Errorf("another hash: %+v, %v", v, err)
	}
}

// TestManyProcessesMakeOneChain: each entry has its own number and predecessor.
func TestManyProcessesMakeOneChain(t *testing.T) {
	b := setup(t, Options{})
	var wg sync.WaitGroup
	for range 3 {
		p := b.another(t)
		for range 5 {
			wg.Go(func() {
				for range 10 {
					if _, err := p.Append(t.Context(), api.AuditEntry{Result: api.AuditDone, Action: "x"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if v := b.verified(t); !v.Intact || v.Entries != 150 || v.Head.Seq != 150 {
		t.Errorf("%+v", v)
	}
}

// TestVerifyingBesideWriters: new entries aren't tampering.
func TestVerifyingBesideWriters(t *testing.T) {
	b := setup(t, Options{Max: chunk + 200})
	b.fill(t, b.opts.Max)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	p := b.another(t)
	wg.Go(func() {
		for ctx.Err() == nil {
			p.fill(t, 1)
		}
	})
	for range 8 {
		if v := b.verified(t); !v.Intact {
			t.Errorf("%+v", v)
		}
		if v := p.verified(t); !v.Intact {
			t.Errorf("the writer: %+v", v)
		}
	}
	cancel()
	wg.Wait()
}

// besides does something at a command of Redis, a few times.
type besides struct {
	at    func(cmd redis.Cmder) bool
	times atomic.Int64
	do    func()
}

func (h *besides) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *besides) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *besides) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if h.at(cmd) && h.times.Add(-1) >= 0 {
			h.do()
		}
		return err
	}
}

// readsHead reports whether a command reads the log's head.
func readsHead(cmd redis.Cmder) bool { return cmd.Name() == "hgetall" && cmd.Args()[1] == headKey() }

// TestVerifyingBesideTheFirstWriter: the very first entry, if it is new, isn't tampering.
func TestVerifyingBesideTheFirstWriter(t *testing.T) {
	b := setup(t, Options{})
	p := b.another(t)
	h := &besides{at: readsHead, do: func() { p.fill(t, 1) }}
	h.times.Store(1)
	b.db.Client().AddHook(h)
	if v := b.verified(t); !v.Intact || v.Entries != 0 {
		t.Errorf("%+v", v)
	}
}

// TestVerifyingBesideTrims: a log that is trimmed at each step of the verification is intact, as is one whose
// every entry is replaced in the meantime.
func TestVerifyingBesideTrims(t *testing.T) {
	for name, step := range map[string]int{"a part": 20, "all": 300} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, Options{Max: 100})
			b.fill(t, 100)
			p := b.another(t)
			h := &besides{at: func(cmd redis.Cmder) bool { return readsHead(cmd) || cmd.Name() == "xrange" },
				do: func() { p.fill(t, step) }}
			h.times.Store(10)
			b.db.Client().AddHook(h)
			v := b.verified(t)
			if !v.Intact || v.First < 2 || v.Entries != v.Head.Seq-v.First+1 {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestTrimmingKeepsTheChain(t *testing.T) {
	b := setup(t, Options{Max: 4, Retention: 24 * time.Hour})
	all := b.fill(t, 10)
	if err := b.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := b.verified(t)
	if !v.Intact || v.Entries != 4 || v.First != 7 || v.Head.Hash != all[9].Hash {
		t.Errorf("by number: %+v", v)
	}
	old := b.db.Client().HGetAll(t.Context(), checkpointKey()).Val()
	b.clock.Advance(25 * time.Hour)
	b.fill(t, 2)
	if err := b.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := b.another(t).verified(t); !v.Intact || v.Entries != 2 || v.First != 11 {
		t.Errorf("by age: %+v", v)
	}
	b.clock.Advance(25 * time.Hour)
	if err := b.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := b.verified(t); !v.Intact || v.Entries != 0 || v.Head.Seq != 12 {
		t.Errorf("all: %+v", v)
	}
	if e := b.fill(t, 1); e[0].Seq != 13 {
		t.Errorf("the next entry: %+v", e)
	}
	b.db.Client().HSet(t.Context(), checkpointKey(), old)
	if v := b.another(t).verified(t); v.Intact {
		t.Error("an old checkpoint is taken")
	}
}

// TestASecretIsReplaced: entries under the removed secret are vouched for, and can't be replaced.
func TestASecretIsReplaced(t *testing.T) {
	b := setup(t, Options{Max: 10})
	b.fill(t, 12)
	if err := b.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	both := b.another(t, "newer", "secret")
	both.fill(t, 2)
	if v := b.another(t, "newer").verified(t); v.Intact {
		t.Error("without the old secret, and before the rotation, it is intact")
	}
	for _, want := range []int{8, 0} {
		if n, err := both.Reseal(t.Context()); n != want || err != nil {
			t.Fatal(n, err)
		}
	}
	fresh := b.another(t, "newer")
	fresh.fill(t, 2)
	if v := fresh.verified(t); !v.Intact || v.Entries != 10 {
		t.Errorf("after: %+v", v)
	}
	rewrite(t, b, func(m []redis.XMessage) []redis.XMessage {
		m[3].Values["e"] = strings.Replace(m[3].Values["e"].(string), "ann", "bob", 1)
		m[3].Values["h"] = hashOf(m[3].Values["e"].(string))
		return m
	})
	if v := b.another(t, "newer").verified(t); v.Intact {
		t.Error("an entry of the removed secret was changed, and it is intact")
	}
	if _, err := fresh.Reseal(t.Context()); err == nil {
		t.Error("a log that is not intact is vouched for")
	}
}

// TestExportedLinesCanBeChecked: with nothing but SHA-256, as docs/access.md says.
func TestExportedLinesCanBeChecked(t *testing.T) {
	b := setup(t, Options{})
	b.fill(t, 7)
	var out strings.Builder
	if err := b.Export(t.Context(), api.AuditQuery{}, &out); err != nil {
		t.Fatal(err)
	}
	prev, n := "", 0
	for lines := bufio.NewScanner(strings.NewReader(out.String())); lines.Scan(); n++ {
		var e api.AuditEntry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(lines.Text(), `,"hash":"`)
		if e.Prev != prev || hashOf(text+"}") != e.Hash || e.Seq != int64(n+1) {
			t.Errorf("line %d: %s", n, lines.Text())
		}
		prev = e.Hash
	}
	if n != 7 {
		t.Errorf("%d lines", n)
	}
}
