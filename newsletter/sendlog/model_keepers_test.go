package sendlog

// The actors of the model that mail no batches.

// keep ends batches of dead workers, enqueues people who are owed a message, and ends the run.
func (a *actor) keep() {
	for {
		a.rests(30)
		end := uint32(a.chunk*ChunkSize + a.people)
		chunks, err := a.Chunks(a.split(), a.run, end)
		a.must(err)
		if a.wrong != nil {
			return
		}
		chunk := chunks[a.chunk]
		if chunk.Batches > 0 {
			_, _ = call(a, func() (bool, error) { return true, a.expireLeases() })
		}
		if chunk.Counts.States[Deferred] > 0 {
			owed, err := a.Owed(a.ctx, a.run, a.chunk)
			a.must(err)
			for _, o := range owed {
				a.enqueue(o)
			}
		}
		if a.chance.IntN(4) == 0 {
			a.recount()
		}
		a.whole(chunk)
	}
}

// whole ends the run if no one waits, or has the processes look again.
func (a *actor) whole(c Chunk) {
	look := !c.Done && c.Again.IsZero()
	over := c.Over()
	if a.flaw == endsEarly {
		over = c.Done && c.Batches == 0 && c.Counts.States[Deferred] == 0
	}
	switch {
	case over:
		a.over = true
	case !c.Done && !c.Again.IsZero() && atTick(a.tick).After(c.Again):
		a.note("the chunk is scanned again")
		_, err := call(a, func() (bool, error) { return true, a.ScanAgain(a.ctx, a.run, a.chunk) })
		look = err == nil
	}
	for _, p := range a.procs {
		if look && p.scan.passed {
			*p.scan = scan{}
		}
	}
}

// expireLeases ends batches whose lease has ended.
func (w *world) expireLeases() error {
	before, err := w.States(w.ctx, w.run, w.chunk)
	if err != nil {
		return err
	}
	back, doubts, err := w.ExpireLeases(w.ctx, w.run, w.chunk, w.resend)
	if err != nil {
		return err
	}
	if back+doubts > 0 {
		w.lapses++
		w.note("%d people wait again, %d are in doubt", back, doubts)
	}
	after, err := w.States(w.ctx, w.run, w.chunk)
	for o, state := range before {
		if w.resend && state == AtDot && after[o] == Waiting {
			w.persons[o].again++
		}
	}
	return err
}

// deliver is the outbox: it mails what it took.
func (a *actor) deliver() {
	for {
		a.rests(5)
		o := a.chance.IntN(a.people)
		m := a.outbox[o]
		if m == nil || m.ended || a.deniedAt > 0 {
			continue
		}
		if a.persons[o].barred > 0 {
			m.ended, a.events = true, append(a.events, Move{Offset: o, To: Suppressed})
			continue
		}
		switch reply, took := a.dot(o, a.tick); {
		case took:
			m.ended, a.events = true, append(a.events, Move{Offset: o, To: Sent})
		case reply == 550:
			m.ended, a.events = true, append(a.events, Move{Offset: o, To: Failed, Why: "550"})
		}
	}
}

// follow applies the events of the outbox.
func (a *actor) follow() {
	for {
		a.rests(5)
		if len(a.events) > 0 {
			move := a.events[0]
			persist(a, func() ([]bool, error) { return a.Settle(a.ctx, a.run, a.chunk, move) })
			a.events = a.events[1:]
		}
	}
}

// pause denies permission and gives it again.
func (a *actor) pause() {
	for version := 2; !a.quiet; version += 2 {
		a.rests(a.chance.IntN(400))
		persist(a, func() (bool, error) { return true, a.Deny(a.ctx, a.run, version) })
		a.denials++
		a.deniedAt = a.tick
		a.note("permission is denied")
		a.rests(a.chance.IntN(60))
		a.deniedAt = 0
		persist(a, func() (bool, error) { return true, a.Allow(a.ctx, a.run, version+1) })
		a.note("permission is given")
	}
}

// leave suppresses people.
func (a *actor) leave() {
	for !a.quiet {
		a.rests(a.chance.IntN(700))
		o := a.chance.IntN(a.people)
		a.must(a.db.Client().Incr(a.ctx, a.versionKey()).Err()) // in one step with the entry
		if a.persons[o].barred == 0 {
			a.note("%d is suppressed", o)
			a.persons[o].barred = a.tick
		}
	}
}
