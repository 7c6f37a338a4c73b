// Command merge measures a mail merge: ten thousand entries in one request, without a file and with one of 1
// MB that all messages carry. It prints how long the request takes, what it costs Redis and the process, and
// compares with as many single submits. docs/performance.md has what it said.
//
//	go run ./bench/merge
//
// It starts its own redis-server, and Postroom as a process of its own, with the role api: what is measured
// is acceptance.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"github.com/postroom/postroom/bench/rig"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
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
	relay *testsmtp.Server
	door  *rig.Process // Postroom with the role api
	url   string
}

func run(ctx context.Context, entries, size, params int) (err error) {
	h := &house{}
	defer h.Close()
	if err := h.MakeDir("", "merge-"); err != nil {
		return err
	}
	if err := h.StartRedis(ctx); err != nil {
		return err
	}
	if h.relay, err = testsmtp.New(testsmtp.Options{Discard: true}); err != nil {
		return err
	}
	h.OnClose(h.relay.Close)
	if h.door, h.url, err = h.StartPostroom("api", h.relay.URL(), map[string]string{
		"documents.store": "none"}); err != nil {
		return err
	}
	return h.measure(ctx, entries, size, params)
}

func (h *house) measure(ctx context.Context, entries, size, params int) error {
	atRest, _ := h.door.Resident()
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
	_, most := h.door.Resident()
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

// merge sends one, three times, and tells the fastest: what else runs on the machine does not count.
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
	before, err := h.used(ctx)
	if err != nil {
		return 0, err
	}
	spent, spentRedis := h.door.CPU(), h.Redis.CPU()
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
	after, err := h.used(ctx)
	if err != nil {
		return 0, err
	}
	each := func(d time.Duration) time.Duration {
		return (d / time.Duration(times*entries)).Round(time.Microsecond)
	}
	rig.Row("answered within", best.Round(10*time.Millisecond).String(), "2s", best <= 2*time.Second)
	rig.Tell("  rate", fmt.Sprintf("%.0f messages/s", float64(entries)/best.Seconds()))
	rig.Tell("  CPU time of each message, Postroom + Redis", fmt.Sprintf("%s + %s", each(h.door.CPU()-spent),
		each(h.Redis.CPU()-spentRedis)))
	rig.Tell("memory of Redis for each message, its event included",
		fmt.Sprintf("%d bytes", (after-before)/int64(times*entries)))
	return best, nil
}

func (h *house) used(ctx context.Context) (int64, error) {
	info, err := h.DB.InfoMap(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	var used int64
	_, err = fmt.Sscan(info["Memory"]["used_memory"], &used)
	return used, err
}

// singles hands in as many messages one by one, over 50 connections, and compares.
func (h *house) singles(ctx context.Context, words api.SubmitRequest, entries int,
	merge time.Duration) error {
	words.Attachments, words.To, words.Render = nil, api.Addresses{{Address: "ann@example.net"}}, &api.Render{
		Params: []byte(`{"name":"Ann","order":1,"city":"Bern"}`)}
	body, err := json.Marshal(words)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(50)
	began := time.Now()
	for range entries {
		group.Go(func() error {
			_, err := h.post(ctx, body)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	took := time.Since(began)
	rig.Title("As many single submits, over 50 connections")
	rig.Tell("answered within", took.Round(10*time.Millisecond).String())
	rig.Tell("  ÷ the merge", fmt.Sprintf("%.1f", took.Seconds()/merge.Seconds()))
	return nil
}

// client keeps as many connections as there are senders.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}}

func (h *house) post(ctx context.Context, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/v1/submit", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+rig.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return answer, err
}

// noise is a file that can't be compressed.
func noise(size int) []byte {
	file := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(file) // it never fails
	return file
}
