// Command merge measures a mail merge: ten thousand entries in one request, without a file and with one of 1
// MB that all messages carry. It prints how long the request takes, what it costs Redis and the process, and
// compares with as many single submits. docs/performance.md has the results.
//
//	go run ./bench/merge
//
// It starts its own redis-server, and Postroom as a process of its own, with the role api: it measures
// acceptance only.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

func main() {
	entries := flag.Int("entries", 10_000, "entries of a merge, 10,000 at most")
	size := flag.Int("size", 1_000_000, "bytes of the file that all messages of the second merge carry")
	params := flag.Int("params", 0,
		"bytes that the params of each entry have beside the usual ones, 3,000 at most with 10,000 entries")
	rig.Main("merge", func(ctx context.Context) error { return run(ctx, *entries, *size, *params) })
}

// house is everything that runs.
type house struct {
	rig.Rig
	relay  *testsmtp.Server
	server *rig.Process // Postroom with the role api
	client *api.Client
}

func run(ctx context.Context, entries, size, params int) (err error) {
	h := &house{}
	defer h.Close()
	if err := h.StartRedis(ctx, "", "merge-"); err != nil {
		return err
	}
	if h.relay, err = testsmtp.New(testsmtp.Options{Discard: true}); err != nil {
		return err
	}
	h.OnClose(h.relay.Close)
	server, url, err := h.StartPostroom("api", h.relay.URL(), map[string]string{"documents.store": "none"})
	if err != nil {
		return err
	}
	h.server, h.client = server, rig.Client(url, 50, 0) // as many connections as single submits at once
	return h.measure(ctx, entries, size, params)
}

func (h *house) measure(ctx context.Context, entries, size, params int) error {
	atRest, _ := h.server.Resident()
	rig.Title(fmt.Sprintf("A merge of %d entries in one request", entries))
	words := api.SubmitRequest{Subject: "Order {{params.order}}", HTML: "<p>Dear {{params.name}},</p>\n" +
		strings.Repeat("<p>{{params.city}} is waiting for you.</p>\n", 20)}
	small, err := h.merge(ctx, words, entries, params)
	if err != nil {
		return err
	}
	rig.Title(fmt.Sprintf("The same with a file of %d kB", size/1000))
	words.Attachments = []api.Attachment{{Filename: "file.bin", Content: noise(size)}}
	if _, err := h.merge(ctx, words, entries, params); err != nil {
		return err
	}
	_, most := h.server.Resident()
	rig.Tell("memory of the API process at rest, at most", fmt.Sprintf("%d MB, %d MB", atRest>>20, most>>20))
	contents, held, err := h.sharedContents(ctx)
	if err != nil {
		return err
	}
	rig.Row("shared contents in Redis, of both merges", fmt.Sprintf("%d, %d kB in all", contents, held/1000),
		"2", contents == 2)
	return h.singles(ctx, words, entries, small)
}

// sharedContents counts the shared contents in Redis.
func (h *house) sharedContents(ctx context.Context) (n int, size int64, err error) {
	keys := h.DB.Scan(ctx, 0, "postroom:{0}:shared:*", 10_000).Iterator()
	for keys.Next(ctx) {
		one, err := h.DB.MemoryUsage(ctx, keys.Val()).Result()
		if err != nil {
			return 0, 0, err
		}
		n, size = n+1, size+one
	}
	return n, size, keys.Err()
}

// merge submits a merge three times and prints the fastest, to exclude what else runs on the machine.
func (h *house) merge(ctx context.Context, req api.SubmitRequest, entries, params int) (best time.Duration,
	err error) {
	req.MailMerge = make([]api.MailMergeEntry, entries)
	more := ""
	if params > 0 {
		more = `,"more":"` + strings.Repeat("x", params) + `"`
	}
	for i := range req.MailMerge {
		req.MailMerge[i] = api.MailMergeEntry{
			To:       api.Address{Name: fmt.Sprintf("Person %d", i), Address: fmt.Sprintf("person%d@example.net", i)},
			Params:   fmt.Appendf(nil, `{"name":"Person %d","order":%d,"city":"Bern"%s}`, i, i, more),
			Metadata: fmt.Appendf(nil, `{"order":%d}`, i),
		}
	}
	body, err := json.Marshal(req)
	if err != nil {
		return 0, err
	}
	const times = 3
	before, err := h.Info(ctx, "Memory", "used_memory")
	if err != nil {
		return 0, err
	}
	spent, spentRedis := h.server.CPU(), h.Redis.CPU()
	for range times {
		began := time.Now()
		answer, err := h.post(ctx, body)
		if err != nil {
			return best, err
		}
		took := time.Since(began)
		if n := bytes.Count(answer, []byte(`"success":true`)); n != entries {
			return best, fmt.Errorf("%d of %d entries were accepted", n, entries)
		}
		if best == 0 || took < best {
			best = took
		}
	}
	after, err := h.Info(ctx, "Memory", "used_memory")
	if err != nil {
		return 0, err
	}
	each := func(d time.Duration) time.Duration {
		return (d / time.Duration(times*entries)).Round(time.Microsecond)
	}
	rig.Row("answered within", best.Round(10*time.Millisecond).String(), "2s", best <= 2*time.Second)
	rig.Tell("  rate", rig.PerSecond(float64(entries)/best.Seconds()))
	rig.Tell("  CPU time of each message, Postroom + Redis", fmt.Sprintf("%s + %s", each(h.server.CPU()-spent),
		each(h.Redis.CPU()-spentRedis)))
	rig.Tell("memory of Redis for each message, its event included",
		fmt.Sprintf("%d bytes", (after-before)/int64(times*entries)))
	return best, nil
}

// singles submits as many messages one by one, over 50 connections, and compares.
func (h *house) singles(ctx context.Context, words api.SubmitRequest, entries int,
	merge time.Duration) error {
	words.Attachments, words.To, words.Render = nil, api.Addresses{{Address: "ann@example.net"}}, &api.Render{
		Params: []byte(`{"name":"Ann","order":1,"city":"Bern"}`)}
	body, err := json.Marshal(words)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := rig.InParallel(ctx, entries, 50, func(ctx context.Context, _ int) error {
		_, err := h.post(ctx, body)
		return err
	}); err != nil {
		return err
	}
	took := time.Since(began)
	rig.Title("As many single submits, over 50 connections")
	rig.Tell("answered within", took.Round(10*time.Millisecond).String())
	rig.Tell("  ÷ the merge", fmt.Sprintf("%.1f", took.Seconds()/merge.Seconds()))
	return nil
}

// post submits a request as it is.
func (h *house) post(ctx context.Context, body []byte) ([]byte, error) {
	submit := api.Upload[struct{}, []byte]("POST /v1/submit application/json")
	return submit.Do(ctx, h.client, bytes.NewReader(body), struct{}{})
}

// noise returns a file that cannot be compressed.
func noise(size int) []byte {
	file := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(file) // it never fails
	return file
}
