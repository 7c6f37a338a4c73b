package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

// sealRounds is how often each of the two is measured. They take turns, because the machine is not equally
// fast all the time.
const sealRounds = 8

// sealKinds are the messages of a comparison.
var sealKinds = []struct {
	name        string
	text, file  int // random bytes
	in          int // messages of a round
	senderCount int
}{
	{name: "5 KB", text: 2_200, in: 1_500, senderCount: 50},
	{name: "1 MB", text: 100, file: 750_000, in: 40, senderCount: 8},
}

// withAndWithoutSeal compares storage.seal on and off: two Postrooms, from submit over HTTP to a sink.
func withAndWithoutSeal(ctx context.Context) error {
	sink, err := testsmtp.New(testsmtp.Options{Discard: true})
	if err != nil {
		return err
	}
	defer sink.Close()
	var both [2]*postroom // without, with
	for i := range both {
		dir, err := os.MkdirTemp("", "postroom-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		a, stop, err := rig.Within(ctx, map[string]string{"data": dir, "smtp": sink.URL(), "from": sender,
			"storage.seal": fmt.Sprint(i == 1)})
		if err != nil {
			return err
		}
		defer stop() //nolint:errcheck // the measurement is over
		both[i] = &postroom{client: rig.ClientWith(a.URL(), a.Token(), 200, 30*time.Second)}
	}
	rig.Title("storage.seal, off and on in turns, medians")
	for k := range sealKinds {
		var rates, cpu [2][]float64
		for range sealRounds {
			for i, p := range both {
				rate, used, err := p.sealRound(ctx, sink, k)
				if err != nil {
					return err
				}
				rates[i], cpu[i] = append(rates[i], rate), append(cpu[i], used)
			}
		}
		off, on, name := median(rates[0]), median(rates[1]), sealKinds[k].name
		rig.Tell(name+", off", rig.PerSecond(off))
		rig.Tell(name+", on", rig.PerSecond(on))
		rig.Tell("  ÷ off", fmt.Sprintf("%.2f", on/off))
		rig.Tell("  CPU time a message, client and sink included, Redis not, off and on",
			fmt.Sprintf("%.2f and %.2f ms", median(cpu[0]), median(cpu[1])))
	}
	return nil
}

// sealRound returns how many messages a second go from submit to the sink, and the CPU time of one in ms.
func (p *postroom) sealRound(ctx context.Context, sink *testsmtp.Server, kind int) (rate, cpu float64,
	err error) {
	k := sealKinds[kind]
	text, file := make([]byte, k.text), make([]byte, k.file)
	rand.Read(text)
	rand.Read(file)
	req := api.SubmitRequest{To: api.Addresses{{Address: recipient}}, Subject: "bench",
		Text: hex.EncodeToString(text)}
	if k.file > 0 {
		req.Attachments = []api.Attachment{{Filename: "bench.bin", Content: file}}
	}
	before, began, count := rig.Self().CPU(), time.Now(), sink.Count()
	if err := rig.InParallel(ctx, k.in, k.senderCount, func(ctx context.Context, _ int) error {
		_, err := api.Submit.Do(ctx, p.client, req)
		return err
	}); err != nil {
		return 0, 0, err
	}
	err = rig.Until(ctx, time.Minute, often, func() (bool, error) { return sink.Count()-count >= k.in, nil })
	return float64(k.in) / time.Since(began).Seconds(),
		float64(rig.Self().CPU()-before) / float64(k.in) / float64(time.Millisecond), err
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
