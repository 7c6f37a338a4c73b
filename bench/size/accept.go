package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// accept submits all messages at once.
func (h *house) accept(ctx context.Context) error {
	rig.Title(fmt.Sprintf("%d messages with a file of %d MB each, submitted at once", h.o.messages,
		h.o.size/1_000_000))
	atRest, _ := h.server.Resident()
	began := time.Now()
	var refused refusals
	if err := rig.InParallel(ctx, h.o.messages, h.o.messages, func(ctx context.Context, n int) error {
		return rig.Persist(ctx, func() error { return h.submit(ctx, n) }, refused.add)
	}); err != nil {
		return err
	}
	took := time.Since(began)
	h.tellTime("accepted", took, h.server)
	rig.Row("refused, to be repeated later", refused.String(), "none", len(refused.codes) == 0)
	_, most := h.server.Resident()
	rig.Tell("memory of the API process at rest, at most", both(atRest, most))
	return h.tellRedis(ctx)
}

// submit submits one message. The client of package api would send it without its length.
func (h *house) submit(ctx context.Context, n int) error {
	before := fmt.Sprintf(`{"account":%q,"to":{"address":"ann@example.net"},"subject":"%d","text":"Enclosed.","idempotencyKey":"size-%d",`+
		`"attachments":[{"filename":"file.bin","content":"`, account, n, n)
	const after = `"}]}`
	f := newFile(n, h.o.size)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/v1/submit",
		io.MultiReader(strings.NewReader(before), f, strings.NewReader(after)))
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(before) + base64.StdEncoding.EncodedLen(h.o.size) + len(after))
	req.Header.Set("Authorization", "Bearer "+rig.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as it matters
	if resp.StatusCode == http.StatusOK {
		f.sum.Sum(h.sums[n][:0])
		return nil
	}
	failure := &api.Failure{}
	if err := json.NewDecoder(resp.Body).Decode(&failure.Problem); err != nil {
		return fmt.Errorf("message %d: %s, %w", n, resp.Status, err)
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	failure.RetryAfter = time.Duration(seconds) * time.Second
	return failure
}

// refusals counts the answers that ask to come back later, by code.
type refusals struct {
	mu    sync.Mutex
	codes map[string]int
}

func (r *refusals) add(code string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.codes == nil {
		r.codes = map[string]int{}
	}
	r.codes[code]++
}

func (r *refusals) String() string {
	if len(r.codes) == 0 {
		return "none"
	}
	return strings.TrimPrefix(fmt.Sprint(r.codes), "map")
}

// file is a file of random octets in base64, made while it is read, so that the clients of this run need
// little memory.
type file struct {
	random *rand.ChaCha8
	left   int // octets still to be made
	sum    hash.Hash
	text   []byte // not read yet
	buffer [64 << 10]byte
	raw    [48 << 10]byte // its base64 fills buffer
}

func newFile(n, size int) *file {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(n)+1)
	return &file{random: rand.NewChaCha8(seed), left: size, sum: sha256.New()}
}

func (f *file) Read(b []byte) (int, error) {
	if len(f.text) == 0 {
		if f.left == 0 {
			return 0, io.EOF
		}
		raw := f.raw[:min(f.left, len(f.raw))]
		_, _ = f.random.Read(raw) // it never fails
		_, _ = f.sum.Write(raw)
		f.left -= len(raw)
		f.text = base64.StdEncoding.AppendEncode(f.buffer[:0], raw)
	}
	n := copy(b, f.text)
	f.text = f.text[n:]
	return n, nil
}
