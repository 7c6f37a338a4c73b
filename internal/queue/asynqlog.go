package queue

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// logEvery is the minimum time between two log lines of one kind of error. While Redis is unavailable each
// loop of each asynq server reports it several times a second.
const logEvery = 10 * time.Second

// asynqLog forwards the log lines of all of a Server's asynq servers to slog. It never ends the process, not
// even for asynq's Fatal.
type asynqLog struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]quiet // few: asynq has some twenty lines
}

// quiet is when and how one kind of error was last logged.
type quiet struct {
	since      time.Time
	suppressed int
}

func newAsynqLog(log *slog.Logger) *asynqLog { return &asynqLog{log: log, kinds: map[string]quiet{}} }

func (l *asynqLog) Debug(args ...any) { l.log.Debug("queue engine", "detail", fmt.Sprint(args...)) }
func (l *asynqLog) Info(args ...any)  { l.log.Debug("queue engine", "detail", fmt.Sprint(args...)) }
func (l *asynqLog) Warn(args ...any)  { l.trouble(args) }
func (l *asynqLog) Error(args ...any) { l.trouble(args) }
func (l *asynqLog) Fatal(args ...any) { l.trouble(args) }

func (l *asynqLog) trouble(args []any) {
	detail, now := fmt.Sprint(args...), time.Now()
	kind := kindOf(detail)
	l.mu.Lock()
	last := l.kinds[kind]
	if !last.since.IsZero() && now.Sub(last.since) < logEvery {
		last.suppressed++
		l.kinds[kind] = last
		l.mu.Unlock()
		return
	}
	l.kinds[kind] = quiet{since: now}
	l.mu.Unlock()
	l.log.Warn("queue engine reported a problem", "detail", detail, "suppressed", last.suppressed)
}

// kindOf returns what asynq was doing when it met an error, without the error and without names of queues
// and tasks.
func kindOf(detail string) string {
	if end := strings.IndexAny(detail, `:="[`); end >= 0 {
		return detail[:end]
	}
	return detail
}
