// Documents measures the embedded search index: how fast documents go into it, how big it gets, how long
// searches take, and how much memory that costs.
//
// The documents look like an application's mail: subjects of a handful of words, addresses of some hundred
// domains, four kinds of status, an excerpt of a few hundred bytes up to 4 KB, words as frequent as in a
// language (Zipf). Half of them are put a second time, as sent.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/bleve"
	"github.com/postroom/postroom/outbox/search/query"
)

type plan struct {
	documents, batch, text, repeat int
	seed                           uint64
	dir                            string
}

func main() {
	var p plan
	flag.IntVar(&p.documents, "documents", 100_000, "messages to index")
	flag.IntVar(&p.batch, "batch", 500, "documents put at once")
	flag.IntVar(&p.text, "text", 600, "bytes of text of a message, on average; 4 KB at most")
	flag.IntVar(&p.repeat, "repeat", 20, "times each search is made")
	flag.Uint64Var(&p.seed, "seed", 1, "of the random mail")
	flag.StringVar(&p.dir, "dir", "", "directory of the index; empty: a temporary one, deleted at the end")
	rig.Main("documents", func(ctx context.Context) error { return run(ctx, p) })
}

func run(ctx context.Context, p plan) error {
	if p.dir == "" {
		dir, err := os.MkdirTemp("", "postroom-documents-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		p.dir = dir
	}
	store, err := bleve.Open(p.dir, bleve.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	fmt.Printf("machine: %d processors, %s; %d messages, %d bytes of text on average, batches of %d, seed %d\n\n",
		runtime.NumCPU(), runtime.Version(), p.documents, p.text, p.batch, p.seed)
	if err := fill(ctx, store, p); err != nil {
		return err
	}
	return measure(ctx, store, p)
}

// fill puts all mail, half of it twice.
func fill(ctx context.Context, store *bleve.Store, p plan) error {
	m := newMail(p)
	began, cpu := time.Now(), rig.Self().CPU()
	put, text, slowest := 0, 0, time.Duration(0)
	for from := 0; from < p.documents; from += p.batch {
		batch := make([]search.Document, 0, p.batch)
		for n := from; n < min(from+p.batch, p.documents); n++ {
			batch = append(batch, m.document(n, n%2 == 1))
			text += len(batch[len(batch)-1].Text)
		}
		for n := max(0, from-p.batch); n < from; n += 2 {
			batch = append(batch, m.again(n))
		}
		at := time.Now()
		if err := store.Put(ctx, batch); err != nil {
			return err
		}
		put, slowest = put+len(batch), max(slowest, time.Since(at))
	}
	took, used := time.Since(began), rig.Self().CPU()-cpu
	size, err := store.Size(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("| indexing | |\n| --- | --- |\n")
	fmt.Printf("| documents put | %d for %d messages, in %.1f s |\n", put, size.Documents, took.Seconds())
	fmt.Printf("| rate | %.0f documents/s; %.0f for each second of a processor (%.1f s in all) |\n",
		float64(put)/took.Seconds(), float64(put)/used.Seconds(), used.Seconds())
	fmt.Printf("| slowest batch | %d ms |\n", slowest.Milliseconds())
	fmt.Printf("| size | %.1f MB, %d bytes a message, of which text %d |\n", float64(size.Bytes)/1e6,
		size.Bytes/int64(size.Documents), text/p.documents)
	fmt.Printf("| memory | %.0f MB resident at the most so far; %.0f MB of Go's heap in use now |\n\n", peakMB(),
		heapMB())
	return nil
}

// measure asks questions of every kind.
func measure(ctx context.Context, store *bleve.Store, p plan) error {
	m, now := newMail(p), start.Add(time.Duration(p.documents)*step)
	rare, common := m.words[4000], m.words[3]
	began := time.Now()
	if _, err := store.Search(ctx, search.Query{Where: query.All{}, Size: 20}); err != nil {
		return err
	}
	fmt.Printf("the first search after the start reads the times of all messages: %d ms\n\n",
		time.Since(began).Milliseconds())
	fmt.Printf("| search | found | median ms | slowest ms |\n| --- | --- | --- | --- |\n")
	for _, c := range []struct {
		name, q string
		change  func(*search.Query)
	}{
		{"a rare word", rare, nil},
		{"a common word", common, nil},
		{"two words", common + " " + m.words[40], nil},
		{"a phrase", `"` + m.document(p.documents/2, true).Subject + `"`, nil},
		{"a phrase of common words", `"` + m.words[0] + " " + m.words[1] + `"`, nil},
		{"a prefix", "subject:" + rare[:3] + "*", nil},
		{"an address", "to:" + m.document(p.documents/3, true).To[0], nil},
		{"a prefix of addresses", "to:us*", nil},
		{"a domain", "to:domain7.example", nil},
		{"a status and a day", "status:sent after:24h", nil},
		{"everything but", "-status:sent", nil},
		{"everything, page 500", "", func(s *search.Query) { s.Skip = 9980 }},
		{"everything, with facets", "", func(s *search.Query) { s.Facets = true }},
		{"a common word, with facets", common, func(s *search.Query) { s.Facets = true }},
		{"a common word, best first", common, func(s *search.Query) { s.Relevance = true }},
		{"one account's, with facets", common, func(s *search.Query) {
			s.Account, s.Facets = "account-3", true
		}},
	} {
		n, err := query.Parse(c.q, now)
		if err != nil {
			return fmt.Errorf("%q: %w", c.q, err)
		}
		s := search.Query{Where: n, Size: 20}
		if c.change != nil {
			c.change(&s)
		}
		took, total := make([]time.Duration, p.repeat), 0
		for i := range took {
			began := time.Now()
			found, err := store.Search(ctx, s)
			if err != nil {
				return fmt.Errorf("%q: %w", c.q, err)
			}
			took[i], total = time.Since(began), found.Total
		}
		slices.Sort(took)
		fmt.Printf("| %s | %d | %s | %s |\n", c.name, total, ms(took[len(took)/2]), ms(took[len(took)-1]))
	}
	fmt.Printf("\nmemory: %.0f MB resident at the most, %.0f MB of Go's heap in use\n", peakMB(), heapMB())
	return nil
}

func ms(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64)
}

// peakMB is the largest memory of this process.
func peakMB() float64 {
	_, most := rig.Self().Resident()
	return float64(most) / (1 << 20)
}

func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse) / 1e6
}

// start is when the first message was accepted, step the time between two.
var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const step = 700 * time.Millisecond

// mail makes mail up.
type mail struct {
	plan
	words []string
}

func newMail(p plan) *mail {
	random := rand.New(rand.NewPCG(p.seed, 0))
	m := &mail{plan: p}
	syllables := strings.Fields(
		"ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru sa se si so su ta te ti to tu")
	for range 30_000 {
		var b strings.Builder
		for range 2 + random.IntN(3) {
			b.WriteString(syllables[random.IntN(len(syllables))])
		}
		m.words = append(m.words, b.String())
	}
	return m
}

// document is the n-th message, the same each time.
func (m *mail) document(n int, ended bool) search.Document {
	random := rand.New(rand.NewPCG(m.seed, uint64(n)+1))
	zipf := rand.NewZipf(random, 1.1, 4, uint64(len(m.words)-1))
	text := func(bytes int) string {
		var b strings.Builder
		for b.Len() < bytes {
			b.WriteString(m.words[zipf.Uint64()])
			b.WriteByte(' ')
		}
		return b.String()
	}
	at := start.Add(time.Duration(n) * step)
	d := search.Document{
		QueueID:   fmt.Sprintf("01%010X%012X00", at.UnixMilli(), random.Uint64()>>16),
		Account:   "account-" + strconv.Itoa(random.IntN(50)),
		MessageID: fmt.Sprintf("<%016x@domain7.example>", random.Uint64()), Subject: text(30 + random.IntN(30)),
		From:   "noreply@shop.example",
		To:     []string{fmt.Sprintf("user%d@domain%d.example", random.IntN(m.documents), random.IntN(300))},
		Status: api.StatusQueued, Lane: api.Transactional,
		Tags: []string{"tag-" + strconv.Itoa(random.IntN(20))}, Gateway: "eu-1", Created: at,
		Text: text(min(int(float64(m.text)*random.ExpFloat64())+50, 4000)), TextKnown: true, Revision: 1,
	}
	if ended {
		over := at.Add(time.Second)
		d.Ended = &over
		d.Status = []api.MessageStatus{api.StatusSent, api.StatusSent, api.StatusSent, api.StatusSent,
			api.StatusSent, api.StatusDead, api.StatusFailed}[random.IntN(7)]
	}
	return d
}

// again is the n-th message as it stood later, without its text.
func (m *mail) again(n int) search.Document {
	d := m.document(n, true)
	d.Text, d.TextKnown, d.Revision = "", false, 2
	return d
}
