package sendlog

import (
	"slices"
	"time"
)

// The workers of the model. They do what package newsletter does, in its order.

// scan is how far a process looked for people.
type scan struct {
	at, to  int
	again   time.Time
	buffer  []int
	passed  bool
	batch   *Batch
	stopped bool
	queue   []int
	version string
	barred  map[int]bool
}

func (w *world) versionKey() string { return logKey(w.run, 0) + ":suppressions" }

// worker takes batches and mails them.
func (a *actor) worker() {
	w := a.proc.scan
	for {
		a.step()
		if w.passed {
			continue
		}
		if w.batch = a.claim(w); w.batch == nil {
			continue
		}
		a.note("batch %s", w.batch)
		w.stopped, w.queue = false, slices.Clone(w.batch.Offsets)
		if a.ask(w) == nil {
			a.mailAll(w)
		}
		batch := w.batch
		persist(a, func() (bool, error) { return true, a.Close(a.ctx, batch, map[string]int{"d:sent:x": 1}) })
		w.batch = nil
	}
}

// claim takes the next batch.
func (a *actor) claim(w *scan) *Batch {
	if len(w.buffer) == 0 && w.to < a.people {
		a.step()
		end := min(w.to+1+a.chance.IntN(5), a.people)
		for o := w.to; o < end; o++ {
			opens := a.persons[o].opens
			switch {
			case opens <= a.tick:
				w.buffer = append(w.buffer, o)
			case w.again.IsZero() || atTick(opens).Before(w.again):
				w.again = atTick(opens)
				a.left++
			}
		}
		w.to = end
	}
	c := Claim{From: w.at, To: w.to, Last: w.to == a.people, Again: w.again, Most: 3}
	if a.flaw == forgetsLeft && !c.Last {
		c.Again = time.Time{}
	}
	c.Offsets = slices.Clone(w.buffer[:min(len(w.buffer), 5)])
	if len(c.Offsets) < len(w.buffer) {
		c.To, c.Last = w.buffer[len(c.Offsets)], false
	}
	for _, o := range c.Offsets {
		if a.groups > 0 {
			c.Groups = append(c.Groups, Group(o%a.groups))
		}
	}
	type claimed struct {
		batch         *Batch
		at            int
		moved, denied bool
	}
	got, err := call(a, func() (claimed, error) {
		s, at, moved, denied, err := a.Claim(a.ctx, a.run, a.chunk, c)
		return claimed{s, at, moved, denied}, err
	})
	if err != nil || got.denied {
		a.rests(10)
		return nil
	}
	if got.moved {
		a.moved++
	}
	if got.moved && (got.at < w.at || got.at > w.to) {
		w.buffer, w.to, w.again = nil, got.at, time.Time{}
	}
	w.at = got.at
	w.buffer = slices.DeleteFunc(w.buffer, func(o int) bool { return o < got.at })
	if got.at >= a.people && (got.moved || got.batch == nil) {
		*w = scan{passed: true}
	}
	return got.batch
}

// ask asks the suppressions about the people of a batch.
func (a *actor) ask(w *scan) error {
	version, err := call(a, func() (string, error) {
		all, err := a.db.Client().MGet(a.ctx, a.versionKey()).Result()
		if err != nil {
			return "", err
		}
		version, ok := all[0].(string)
		if !ok {
			version = "0"
		}
		return version, nil
	})
	if err != nil {
		return err
	}
	barred := map[int]bool{}
	for _, o := range w.batch.Offsets {
		if barred[o] = a.persons[o].barred > 0; o%2 == 0 {
			a.step()
		}
	}
	w.version, w.barred = version, barred
	return nil
}

// mailAll sends to a batch, two people together.
func (a *actor) mailAll(w *scan) {
	var moves []Move
	for _, o := range w.queue {
		if w.barred[o] {
			moves = append(moves, Move{Offset: o, To: Suppressed})
		}
	}
	if len(moves) > 0 {
		a.record(w.batch, moves...)
	}
	w.queue = slices.DeleteFunc(w.queue, func(o int) bool { return w.barred[o] })
	for range 2 {
		a.proc.lanes++
		a.begin(a.proc, "lane", func(l *actor) {
			for len(w.queue) > 0 && !w.stopped {
				o := w.queue[0]
				w.queue = w.queue[1:]
				l.mail(w, o)
			}
			l.proc.lanes--
		})
	}
	for a.proc.lanes > 0 {
		a.step()
	}
}

// record records results for a batch's people.
func (a *actor) record(batch *Batch, moves ...Move) []bool {
	return persist(a, func() ([]bool, error) {
		if a.flaw == settlesLost {
			return a.Settle(a.ctx, batch.Run, batch.Chunk, moves...)
		}
		done, _, err := a.Record(a.ctx, batch, moves...)
		return done, err
	})
}

// mail mails one person.
func (a *actor) mail(w *scan, o int) {
	a.try(w, o)
	delete(a.risky, doubtful{w.batch.number, o})
}

func (a *actor) try(w *scan, o int) {
	a.step()
	switch a.chance.IntN(16) {
	case 0, 3, 5: // deferred before the dot
		a.deferred++
		a.putOff(w.batch, o)
		return
	case 1, 4, 6: // refused before the dot
		a.record(w.batch, Move{Offset: o, To: Bounced, Why: "550"})
		return
	case 2: // no relay takes mail
		w.stopped = true
		return
	}
	if a.flaw == marksLate {
		reply, _ := a.dot(o, a.tick)
		a.step()
		if _, went := a.marks(w, o); went {
			a.reply(w, o, reply)
		}
		return
	}
	mark, went := a.marks(w, o)
	if !went {
		return
	}
	if a.flaw == settlesEarly {
		a.record(w.batch, Move{Offset: o, To: Sent})
	}
	if a.epoch[w.batch.number] != mark.epoch || a.chance.IntN(12) == 0 { // too late, or the relay is gone
		a.record(w.batch, Move{Offset: o, To: Taken})
		w.stopped = true
		return
	}
	reply, _ := a.dot(o, mark.began)
	a.reply(w, o, reply)
}

type mark struct {
	Marking
	began int // the step
	epoch int // the lease's
}

// marks sets the mark, and reports whether the dot may be written.
func (a *actor) marks(w *scan, o int) (mark, bool) {
	for {
		if w.barred[o] {
			a.record(w.batch, Move{Offset: o, To: Suppressed})
			return mark{}, false
		}
		batch, version := w.batch, w.version
		m, err := call(a, func() (m mark, err error) {
			m.began, m.epoch = a.tick, a.epoch[batch.number]
			m.Marking, err = a.tryMark(batch, o, version)
			a.risky[doubtful{batch.number, o}] = true
			return m, err
		})
		switch {
		case err != nil:
			a.risk++
			w.stopped = true
			return m, false
		case m.Marking == Go:
			return m, true
		case m.Marking == Changed && w.version == version:
			if a.ask(w) != nil {
				w.stopped = true
				return m, false
			}
		case m.Marking != Changed:
			w.stopped = true
			return m, false
		}
	}
}

// reply records the reply to a dot.
func (a *actor) reply(w *scan, o, reply int) {
	a.step()
	switch reply {
	case 250:
		a.record(w.batch, Move{Offset: o, To: Sent})
	case 450:
		a.deferred++
		a.putOff(w.batch, o)
	case 550:
		a.record(w.batch, Move{Offset: o, To: Failed, Why: "550"})
	default:
		a.risk++
		a.record(w.batch, Move{Offset: o, To: InDoubt, Why: "the connection was cut"})
	}
}

// putOff makes a person's message of the outbox.
func (a *actor) putOff(batch *Batch, o int) {
	if a.flaw == enqueuesEarly {
		a.enqueue(o)
		a.step()
	}
	if changed := a.record(batch, Move{Offset: o, To: Deferred, Why: "450"}); len(changed) == 1 && changed[0] {
		a.enqueue(o)
	}
}

// enqueue hands a message to the outbox, which takes it once.
func (a *actor) enqueue(o int) {
	_, err := call(a, func() (bool, error) {
		if a.outbox[o] == nil {
			a.note("the outbox has %d", o)
			a.outbox[o] = &mail{}
		}
		return true, nil
	})
	if err == nil {
		_, _ = call(a, func() (bool, error) { return true, a.Enqueued(a.ctx, a.run, a.chunk, o) })
	}
}

// renew renews the lease of the batch of a process.
func (a *actor) renew() {
	for {
		a.rests(40)
		if batch := a.proc.scan.batch; batch != nil {
			_, _ = call(a, func() (bool, error) { return true, a.Renew(a.ctx, []*Batch{batch}) })
		}
	}
}
