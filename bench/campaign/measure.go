package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// besides is how many single messages are measured, one every 20 ms.
const besides, perSecond = 500, 50

// measure sends the first campaign, and single messages beside it.
func (h *house) measure(ctx context.Context) error {
	accept, relay, err := h.singles(ctx, "alone")
	if err != nil {
		return err
	}
	commands, err := h.Info(ctx, "Stats", "total_commands_processed")
	if err != nil {
		return err
	}
	before, err := h.Info(ctx, "Memory", "used_memory")
	if err != nil {
		return err
	}
	mine, redis, began := h.postroom.CPU(), h.Redis.CPU(), time.Now()
	if _, err := api.SendCampaign.Do(ctx, h.client, api.CampaignStart{}, "calm"); err != nil {
		return err
	}
	if err := rig.Until(ctx, time.Minute, time.Millisecond, func() (bool, error) {
		return h.ledger.mails() > 0,
			nil
	}); err != nil {
		return err
	}
	first := time.Since(began)
	acceptBeside, relayBeside, err := h.singles(ctx, "beside")
	if err != nil {
		return err
	}
	stop, err := h.profiled()
	if err != nil {
		return err
	}
	st, err := h.finished(ctx, "calm")
	if stop(); err != nil {
		return err
	}
	took, n := time.Since(began), float64(h.people)
	after, err := h.Info(ctx, "Memory", "used_memory")
	if err != nil {
		return err
	}
	all, err := h.Info(ctx, "Stats", "total_commands_processed")
	if err != nil {
		return err
	}
	mine, redis = h.postroom.CPU()-mine, h.Redis.CPU()-redis
	_, most := h.postroom.Resident()
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	rig.Title("One campaign")
	rig.Tell("mails a second", fmt.Sprintf("%.0f", n/took.Seconds()))
	h.check("first mail after the answer", rig.Round(first).String(), "at most 2s", first <= 2*time.Second)
	h.check("processor time of a mail, of Postroom and Redis", fmt.Sprintf("%.0f + %.0f µs", each(mine),
		each(redis)),
		"at most 220 µs", each(mine+redis) <= 220)
	h.check("Redis commands of a mail", fmt.Sprintf("%.1f", float64(all-commands)/n), "at most 15",
		float64(all-commands)/n <= 15)
	h.check("memory that Redis has more afterwards, of a million people", fmt.Sprintf("%.1f MB",
		float64(after-before)/n),
		"at most 60 MB", float64(after-before)/n <= 60)
	rig.Tell("most memory of Postroom, the import included", fmt.Sprintf("%d MB", most>>20))
	h.check("sent", fmt.Sprint(st.States.Sent), fmt.Sprint(h.people), st.States.Sent == h.people)
	h.books("calm", st)
	h.notice(accept, acceptBeside, relay, relayBeside)
	return nil
}

// notice prints what single messages noticed of the campaign.
func (h *house) notice(accept, acceptBeside, relay, relayBeside rig.Quantiles) {
	rig.Title("Single messages beside it, p50 / p99")
	for _, one := range []struct {
		what          string
		alone, beside rig.Quantiles
	}{{"accepted", accept, acceptBeside}, {"from submit to relay", relay, relayBeside}} {
		rig.Tell(one.what+", alone", one.alone.String())
		h.check("  beside the campaign", one.beside.String(), "p99 at most 1.5 times and 10ms",
			one.beside.P99 <= one.alone.P99*3/2+10*time.Millisecond)
	}
}

// profiled writes the profile of this process to a file until stop is called.
func (h *house) profiled() (stop func(), err error) {
	if h.profile == "" {
		return func() {}, nil
	}
	out, err := os.Create(h.profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = out.Close() }, nil
}

// singles submits single messages steadily, and returns how long their acceptance took, and their way to the
// relay.
func (h *house) singles(ctx context.Context, name string) (accept, relay rig.Quantiles, err error) {
	h.ledger.expect(name)
	began := make([]time.Time, besides)
	accept, err = rig.Steadily(ctx, besides, perSecond, func(ctx context.Context, i int) error {
		began[i] = time.Now()
		_, err := api.Submit.Do(ctx, h.client, api.SubmitRequest{To: api.Addresses{{Address: single(name, i)}},
			Subject: "Your order", Text: "Thank you"})
		return err
	})
	if err != nil {
		return accept, relay, err
	}
	var arrived []time.Time
	err = rig.Until(ctx, time.Minute, 20*time.Millisecond, func() (bool, error) {
		arrived = h.ledger.singles(name)
		return len(arrived) == besides, nil
	})
	took := make([]time.Duration, 0, besides)
	for i, at := range arrived {
		took = append(took, at.Sub(began[i]))
	}
	return accept, rig.QuantilesOf(took), err
}

// books compares the numbers of a campaign with the ledger.
func (h *house) books(id string, st api.CampaignStats) {
	got, twice := h.ledger.of(id)
	h.check("people who got it twice", fmt.Sprint(twice), "none", twice == 0)
	h.check("people who have it, and the numbers say so", fmt.Sprintf("%d, %d sent, %d in doubt", got,
		st.States.Sent,
		st.States.InDoubt), "", got >= st.States.Sent && got <= st.States.Sent+st.States.InDoubt)
}
