package audience

import (
	"context"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"io"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/suppression"
)

// batch is some lines of a file.
type batch struct {
	rows     []row
	from     int // lines of the file before it
	lines    int // in the file up to its end
	repeated int // in this batch
	bad      int
	errors   []api.BadLine // the first bad ones

	bytes   int64 // the file, up to its end
	sum     string
	charset string
}

// row is a subscriber of a file.
type row struct {
	n, line int // as SubscriberImport.Lines counts, and in the file
	in      entry
	state   State  // on the lists of the import; Left also without lists
	fresh   record // as a new subscriber, without lists
	address string // folded

	ordinal  uint32
	place    string // the ordinal of the address in the index; empty if none
	older    bool   // it is in the index by the decomposed address
	old      *record
	wishes   []wish
	stops    []*suppression.Entry // one for each wish, or nil
	decision decision
	pending  []*List // on which an email asks for the confirmation
	result   result
	fault    string // with result bad
}

// result is how a row ended.
type result byte

const (
	undecided result = iota
	added
	changed
	known
	bad
)

// read reads the file to its end. Lines that an earlier run applied are only remembered.
func (i *importing) read(ctx context.Context, batches chan<- *batch) error {
	b, began := &batch{}, time.Now()
	for n := 0; ; {
		in, broken, err := i.rows.next()
		if err == io.EOF && n < i.skip {
			return i.differs("another file")
		}
		if err == io.EOF {
			return i.send(ctx, batches, b, n)
		}
		if err != nil {
			return err
		}
		n++
		i.row(b, n, in, broken)
		if n <= i.skip {
			if n == i.skip && (i.rows.lines.Bytes != i.state.Bytes || i.sum() != i.state.Sum) {
				return i.differs("another file")
			}
			*b, began = batch{rows: b.rows[:0], from: n}, time.Now()
			continue
		}
		if n-b.from >= importBatch || n%16 == 0 && time.Since(began) > importSaved {
			if err := i.send(ctx, batches, b, n); err != nil {
				return err
			}
			b, began = &batch{from: n, rows: make([]row, 0, importBatch)}, time.Now()
		}
	}
}

// sum returns the hash of the bytes so far.
func (i *importing) sum() string { return hex.EncodeToString(i.rows.lines.Hash.Sum(nil)) }

// send gives a batch to be applied.
func (i *importing) send(ctx context.Context, batches chan<- *batch, b *batch, lines int) error {
	b.lines, b.bytes, b.sum, b.charset = lines, i.rows.lines.Bytes, i.sum(), i.rows.lines.Charset()
	select {
	case batches <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// row adds a row of the file to a batch.
func (i *importing) row(b *batch, n int, in entry, broken error) {
	b.rows = append(b.rows, row{n: n, line: i.rows.line(), in: in})
	r := &b.rows[len(b.rows)-1]
	if broken == nil {
		broken = i.check.fill(i, r)
	}
	if broken == nil && i.seen.add(r.address) {
		return
	}
	b.rows = b.rows[:len(b.rows)-1]
	if broken == nil {
		b.repeated++
		return
	}
	b.wrong(r.line, broken.Error())
}

// wrong adds a bad line.
func (b *batch) wrong(line int, reason string) {
	b.bad++
	if len(b.errors) < badShown {
		b.errors = append(b.errors, api.BadLine{Line: line, Reason: reason})
	}
}

// checker checks rows. It remembers the languages and time zones that are right, because looking them up
// takes longer than the rest of a row.
type checker struct{ locales, zones map[string]string }

// mostWords bounds what a checker remembers.
const mostWords = 1000

// fill checks a row and makes a subscriber of it.
func (c *checker) fill(i *importing, r *row) error {
	var f faults
	in := &r.in
	in.Email = f.email(in.Email)
	if len(f.Fields) > 0 {
		return rowFault(f)
	}
	r.address = strings.ToLower(in.Email)
	in.Locale = f.remembered(&c.locales, in.Locale, f.locale)
	in.TZ = f.remembered(&c.zones, in.TZ, f.zone)
	if i.o.Tag != "" && !slices.Contains(in.Tags, i.o.Tag) {
		in.Tags = append(slices.Clip(in.Tags), i.o.Tag)
	}
	if in.Consent != nil {
		f.consent(in.Consent, i.s.now())
	}
	r.state = i.stateOf(in.says)
	if (r.state == Subscribed && in.Consent == nil || in.needsConsent()) && i.terms.consent == nil {
		f.Add("consent", "is required with state subscribed, here or for all lines")
	}
	r.fresh.email = in.Email
	f.fillChecked(&r.fresh, in.SubscriberRequest)
	return rowFault(f)
}

// stateOf returns a row's state on the import's lists, or None if it is about no list. The row or the options
// count, whichever stops more mail.
func (i *importing) stateOf(says State) State {
	switch {
	case says == Left:
		return Left
	case len(i.wishes) == 0:
		return None
	case says == Pending && i.wishes[0].state == Subscribed:
		return Pending
	}
	return i.wishes[0].state
}

// remembered returns the checked form of a word.
func (f *faults) remembered(words *map[string]string, word string, check func(string) string) string {
	if word == "" {
		return ""
	}
	if known, ok := (*words)[word]; ok {
		return known
	}
	if *words == nil || len(*words) >= mostWords {
		*words = map[string]string{}
	}
	faults := len(f.Fields)
	normal := check(word)
	if len(f.Fields) == faults {
		(*words)[strings.Clone(word)] = normal
	}
	return normal
}

// rowFault returns the first invalid field as an error.
func rowFault(f faults) error {
	if len(f.Fields) == 0 {
		return nil
	}
	return errors.New(f.Fields[0].Key + " " + f.Fields[0].Message)
}

// seen is the set of the addresses of a file, as hashes of 64 bits: the chance that ten million addresses
// have two of one hash is one in 300,000. It takes at most 16 bytes an address. The seed is random, so no one
// can construct such addresses.
type seen struct {
	seed   maphash.Seed
	tables [256]seenTable // by the first byte; they grow one after the other, so few are there twice
}

// seenTable is a hash table with linear probing. It is at most 7/8 full, and after it grew 4/7.
type seenTable struct {
	slots []uint64 // 0 if free
	used  int
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed()} }

// add adds a folded address, and reports whether it was not there.
func (s *seen) add(address string) bool {
	h := maphash.String(s.seed, address)
	return s.tables[h>>56].add(h<<8 | 1) // never 0; the first byte names the table
}

func (t *seenTable) add(h uint64) bool {
	if 8*(t.used+1) > 7*len(t.slots) {
		old := t.slots
		t.slots, t.used = make([]uint64, max(16, len(old)+len(old)/2)), 0
		for _, h := range old {
			if h != 0 {
				t.add(h)
			}
		}
	}
	n := uint64(len(t.slots))
	for i, _ := bits.Mul64(h, n); ; i = (i + 1) % n {
		switch t.slots[i] {
		case h:
			return false
		case 0:
			t.slots[i] = h
			t.used++
			return true
		}
	}
}
