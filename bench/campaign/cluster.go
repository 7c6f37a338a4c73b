package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// processes is how many processes share the campaign on a Cluster.
const processes = 3

// several is the plan for several processes on a Redis Cluster: they share one campaign, and each is killed
// once and started again. Another than the one that is killed is asked.
func (h *house) several(ctx context.Context) error {
	cluster, err := h.StartCluster(ctx, "", "campaign-", h.durable()...)
	if err != nil {
		return err
	}
	all, clients := make([]*rig.Process, processes), make([]*api.Client, processes)
	open := func(n int) error {
		p, url, err := h.StartPostroom("all", h.relay.URL(), map[string]string{"redis.url": cluster,
			"redis.partitions": "6", "serviceUrl": "https://news.example.com",
			"data": filepath.Join(h.Dir, fmt.Sprintf("all-%d", n+1))})
		if err == nil {
			all[n], clients[n] = p, rig.Client(url, 40, time.Minute)
		}
		return err
	}
	for n := range all {
		if err := open(n); err != nil {
			return err
		}
	}
	h.client = clients[0]
	if err := h.enlist(ctx); err != nil {
		return err
	}
	if err := h.draft(ctx, "shared"); err != nil {
		return err
	}
	began := time.Now()
	if _, err := api.SendCampaign.Do(ctx, h.client, api.CampaignStart{}, "shared"); err != nil {
		return err
	}
	dice := rand.New(rand.NewPCG(h.seed, 3)) //nolint:gosec // dice
	for i, n := range dice.Perm(processes) {
		mails := h.people * (2*i + 1 + dice.IntN(2)) / (2*processes + 1)
		if err := rig.Until(ctx, time.Hour, 5*time.Millisecond, func() (bool, error) {
			return h.ledger.mails() >= mails, nil
		}); err != nil {
			return err
		}
		fmt.Printf("  kill -9 of process %d after %d mails\n", n+1, h.ledger.mails())
		all[n].Kill()
		if err := open(n); err != nil {
			return err
		}
	}
	h.client = clients[0]
	st, err := h.finished(ctx, "shared")
	if err != nil {
		return err
	}
	return h.judgeShared(ctx, st, time.Since(began))
}

// judgeShared compares the numbers of the campaign with the ledger.
func (h *house) judgeShared(ctx context.Context, st api.CampaignStats, took time.Duration) error {
	s := st.States
	rig.Title(fmt.Sprintf("A campaign of %d processes on a Redis Cluster, each killed once", processes))
	rig.Tell("mails a second, the leases of the dead included", fmt.Sprintf("%.0f", float64(h.people)/took.Seconds()))
	h.books("shared", st)
	h.check("people who have a state that ends", fmt.Sprintf("%d sent, %d in doubt", s.Sent, s.InDoubt),
		fmt.Sprint(h.people), s.Sent+s.InDoubt == h.people && st.Audience == h.people)
	most := mailsAtOnce * processes
	h.check("in doubt", fmt.Sprint(s.InDoubt), fmt.Sprintf("at most %d", most), s.InDoubt <= most)
	recount, err := api.RecountCampaign.Do(ctx, h.client, "shared")
	if err != nil {
		return err
	}
	h.check("counters that a recount changes", fmt.Sprint(recount.Changed), "false", !recount.Changed)
	return nil
}
