package digest

import (
	"hash/fnv"
	"time"
)

// A plan decides when a recipient's mail is due. It is pure: time and recipient are given.

// stagger returns by how much the mail of a recipient is later than the time of its schedules.
func (o Options) stagger(k readerKey) time.Duration {
	if o.Stagger < time.Second {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(k.account + "\x00" + k.id)) // never fails
	sum := h.Sum64()
	return time.Duration((sum^sum>>32)%uint64(o.Stagger/time.Second)) * time.Second
}

// spent bounds the moves of a due time out of quiet hours.
const spent = 20

// due returns when mail is sent that a schedule wants at a time: later by the stagger, not in quiet hours,
// and not while the recipient pauses.
func (o Options) due(r *recipient, at time.Time) time.Time {
	stagger := o.stagger(r.readerKey)
	return o.awake(r, at.Add(stagger), stagger)
}

// awake returns at, or the first time after it at which a recipient may get mail.
func (o Options) awake(r *recipient, at time.Time, stagger time.Duration) time.Time {
	if at.Before(r.paused) {
		at = r.paused
	}
	for range spent {
		end := r.quiet.End(at, r.zone)
		if end.Equal(at) {
			return at
		}
		if at = end.Add(stagger); !r.quiet.In(at, r.zone) {
			return at
		}
	}
	return r.quiet.End(at, r.zone)
}

// mayMail returns when a schedule may send to a recipient: now, or when quiet hours or the pause end. Late
// mail waits for them too. Urgent mail waits for the end of a pause only.
func (o Options) mayMail(r *recipient, schedule string, now time.Time) time.Time {
	if schedule != urgentSchedule {
		return o.awake(r, now, o.stagger(r.readerKey))
	}
	if r.paused.After(now) {
		return r.paused
	}
	return now
}

// wasPutOff reports whether something is due at a time because quiet hours or the pause ended.
func (o Options) wasPutOff(r *recipient, at time.Time) bool {
	return !at.After(r.paused) || r.quiet.In(at.Add(-o.stagger(r.readerKey)-time.Millisecond), r.zone)
}

// period is one email of a schedule.
type period struct {
	id  string
	due time.Time
}

// mostSpan bounds how far back the newest period is looked for.
const mostSpan = 400 * 24 * time.Hour

// instant is how periods of schedules without a cadence are named.
const instant = "2006-01-02T15:04:05.000Z"

// next returns the first period of a cadence that is due after now and comes after the period last. ok is
// false if none comes.
func (o Options) next(r *recipient, c cadence, last string, now time.Time) (p period, ok bool) {
	for at := o.from(r, now); ; {
		slot, ok := c.Next(at, r.zone)
		if !ok {
			return period{}, false
		}
		at = slot.At
		if due := o.due(r, at); due.After(now) && slot.ID > last {
			return period{slot.ID, due}, true
		}
	}
}

// from returns a time before which no slot is due after now.
func (o Options) from(r *recipient, now time.Time) time.Time {
	if r.paused.After(now) { // everything before the end of the pause is due then
		return now.Add(-o.Stagger - time.Hour)
	}
	return now.Add(-2*o.Stagger - r.quiet.Longest() - time.Hour)
}

// newest returns the last period of a cadence that is due at or before now and comes after the period last.
// since is when it was due first; it looks for none before that. ok is false if none is due.
func (o Options) newest(r *recipient, c cadence, last string, since, now time.Time) (p period, ok bool) {
	span := min(c.Span(), mostSpan)
	late := 2*o.Stagger + r.quiet.Longest() + time.Hour
	at := since.Add(-late)
	if o.wasPutOff(r, since) { // it was due before, by up to a whole period
		at = at.Add(-span)
	}
	if least := now.Add(-late - 2*span); at.Before(least) {
		at = least
	}
	for {
		slot, more := c.Next(at, r.zone)
		if !more || slot.At.After(now) {
			return p, ok
		}
		at = slot.At
		if due := o.due(r, at); !due.After(now) && slot.ID > last {
			p, ok = period{slot.ID, due}, true
		}
	}
}

// soon returns when immediate mail that comes now is due: immediately, or when the gap after the last ends.
func (o Options) soon(r *recipient, gap time.Duration, last, now time.Time) time.Time {
	return o.awake(r, afterGap(gap, last, now), o.stagger(r.readerKey))
}

// afterGap returns when the gap after the last mail ends; now if it has ended.
func afterGap(gap time.Duration, last, now time.Time) time.Time {
	if end := last.Add(gap); end.After(now) {
		return end
	}
	return now
}
