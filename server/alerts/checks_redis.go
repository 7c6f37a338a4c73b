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
	return some(recordsRefused, len(names), "These records in Redis are refused, because they are not as Postroom "+
		"wrote them, or the secret of this instance was changed: %s. The log says how. Find out who writes to Redis; "+
		"enter secrets again, and delete tokens you did not make.", first(names))
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
	then := fmt.Sprintf("From %.0f %% on new mail is refused (redis.maxMemoryShare)", 100*most)
	if share >= most {
		then = "New mail is refused (redis.maxMemoryShare)"
	}
	return finding{
		alert: redisMemory, wrong: share >= near*most, value: share, threshold: near * most,
		text: fmt.Sprintf("Redis uses %.0f %% of its maxmemory. %s. Raise maxmemory, or cancel what need not be sent.", 100*share, then),
	}
}

func judgeEvicted(n int64) finding {
	return some(redisEvicts, int(n), "Redis has thrown away %d keys for want of memory: mail may be lost. Set "+
		"maxmemory-policy noeviction, compare what was submitted with what was sent, and end this alert with "+
		"redis-cli config resetstat.", n)
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
	return some(auditBroken, n, "The audit log was tampered with: %s. See all of it with postroom audit --verify.",
		problem)
}

// awayState returns the alert about a failing Redis, by the clock of this process. The cause is only logged:
// it may contain addresses.
func awayState(answers bool, now time.Time) state {
	now = now.UTC().Truncate(time.Millisecond)
	text := "Redis does not answer: no mail is accepted or sent. Bring it back; see redis.url and the log."
	if answers {
		text = "Redis refuses to write: no mail is accepted or sent. Is its disk or its memory full, or is it a " +
			"replica? The log has its words."
	}
	return some(redisAway, 1, "%s", text).state(now, now)
}
