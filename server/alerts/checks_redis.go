package alerts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// refusedFor is how long a refused record counts after it was last read. Mail that waits for an account reads
// it more often.
const refusedFor = time.Hour

func (w *Watch) askRecords(_ context.Context, now time.Time) ([]finding, error) {
	for _, name := range w.parts.Refused() {
		w.refusals[name] = now
	}
	maps.DeleteFunc(w.refusals, func(_ string, at time.Time) bool { return now.Sub(at) >= refusedFor })
	return []finding{judgeRecords(slices.Sorted(maps.Keys(w.refusals)))}, nil
}

func judgeRecords(names []string) finding {
	return some(recordsRefused, len(names), "Postroom refuses these records in Redis, because someone "+
		"else modified them or this instance's secret changed: %s. The log has the details. Find out who writes to Redis, enter the secrets again, and delete tokens that you didn't create.", first(names))
}

func (w *Watch) askMemory(ctx context.Context, _ time.Time) ([]finding, error) {
	if w.opts.MemoryShare <= 0 {
		return nil, nil
	}
	share, err := w.parts.MemoryShare(ctx)
	if err != nil {
		return nil, err
	}
	return []finding{judgeMemory(share, w.opts.MemoryShare)}, nil
}

func judgeMemory(share, most float64) finding {
	then := fmt.Sprintf("From %.0f %% on, new messages are refused (redis.maxMemoryShare)", 100*most)
	if share >= most {
		then = "New messages are refused (redis.maxMemoryShare)"
	}
	return finding{
		alert: redisMemory, wrong: share >= near*most, value: share, threshold: near * most,
		text: fmt.Sprintf("Redis uses %.0f %% of its maxmemory. %s. Raise maxmemory, or cancel messages "+
			"that you don't need to send.", 100*share, then),
	}
}

func judgeEvicted(n int64) finding {
	return some(redisEvicts, int(n), "Redis has evicted %d keys because it ran out of memory, so messages "+
		"may be lost. Set maxmemory-policy noeviction, compare submitted with sent messages, and clear this alert with redis-cli config resetstat.", n)
}

func judgeDurability(d redisdb.Durability) finding {
	return some(redisForgets, len(d.Warnings), "%s", strings.Join(d.Warnings, " "))
}

// CheckRedis returns the alerts about a Redis that no process may watch yet.
func CheckRedis(ctx context.Context, db *redisdb.DB, memoryShare float64) (wrong []api.Alert, _ error) {
	w := Watch{parts: Parts{MemoryShare: db.MemoryShare}, opts: Options{MemoryShare: memoryShare}}
	for _, ask := range []check{
		w.askMemory, each(db.Evicted, judgeEvicted), each(db.Durability, judgeDurability),
	} {
		now := time.Now()
		found, err := ask(ctx, now)
		if err != nil {
			return wrong, err
		}
		for _, f := range found {
			if f.wrong {
				wrong = append(wrong, f.state(now, now).Alert)
			}
		}
	}
	return wrong, nil
}

func (w *Watch) askAudit(context.Context, time.Time) ([]finding, error) {
	ok, problem := w.parts.Intact()
	return []finding{judgeAudit(ok, problem)}, nil
}

func judgeAudit(ok bool, problem string) finding {
	n := 1
	if ok {
		n = 0
	}
	return some(auditBroken, n, "The audit log was tampered with: %s. Show all problems with postroom "+
		"audit --verify.",
		problem)
}

// awayState returns the alert about a failing Redis, by the clock of this process. The cause is only logged:
// it may contain addresses.
func awayState(answers bool, now time.Time) state {
	now = now.UTC().Truncate(time.Millisecond)
	text := "Redis doesn't respond, so Postroom accepts and sends nothing. Restart it, and check " +
		"redis.url and the log."
	if answers {
		text = "Redis refuses to write, so Postroom accepts and sends nothing. Check whether its disk or memory is full, or whether it is a " +
			"replica. The log has its error."
	}
	return some(redisAway, 1, "%s", text).state(now, now)
}
