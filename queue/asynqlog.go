package queue

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// logEvery is how often an error of asynq is logged at most. While Redis is away each of its loops reports that several times a second.
const logEvery = 5 * time.Second

// asynqLog passes asynq's own lines on to slog. It never ends the process, whatever asynq wants.
type asynqLog struct {
	log *slog.Logger

	mu         sync.Mutex
	last       time.Time
	suppressed int
}

func (l *asynqLog) Debug(args ...any) { l.log.Debug("queue engine", "detail", fmt.Sprint(args...)) }
func (l *asynqLog) Info(args ...any)  { l.log.Debug("queue engine", "detail", fmt.Sprint(args...)) }
func (l *asynqLog) Warn(args ...any)  { l.trouble(args) }
func (l *asynqLog) Error(args ...any) { l.trouble(args) }
func (l *asynqLog) Fatal(args ...any) { l.trouble(args) }

func (l *asynqLog) trouble(args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last) < logEvery {
		l.suppressed++
		return
	}
	l.log.Warn("queue engine has trouble", "detail", fmt.Sprint(args...), "suppressed", l.suppressed)
	l.last, l.suppressed = time.Now(), 0
}
