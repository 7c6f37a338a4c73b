package newsletter

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// play plays a history whose steps are given, in the world of the model.
func play(t *testing.T, history func(m *model)) {
	t.Parallel()
	m := newModel(t, testredis.URL(t))
	random := make([]byte, 1<<16)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	rapid.MakeFuzz(func(rt *rapid.T) {
		m.begin(rt)
		defer m.release()
		m.resend, m.replies = false, map[string]string{}
		_, err := m.eye.Update(m.ctx, "", spring, api.CampaignPatch{Rate: new(0.0), Window: &api.CampaignWindow{},
			Variants: &[]api.CampaignVariant{}, Test: &api.CampaignTrial{}})
		m.must(err)
		history(m)
		judge{m}.check()
	})(t, random)
}

// states returns how many recipients of a run have which state.
func (m *model) states(run int) map[string]int {
	n := map[string]int{}
	for _, r := range (judge{m}).recipients(run) {
		n[r.State]++
	}
	return n
}

// sends sends the campaign, and lets a process look at it.
func (m *model) sends(p *process) {
	m.calm(p, "sends", func(ctx context.Context, p *process) func() {
		_, err := p.Send(ctx, "", spring, api.CampaignStart{})
		m.must(err)
		return nil
	})
	m.calm(p, "looks", looks)
}

// resends begins the next run.
func (m *model) resends(p *process, to string) {
	m.calm(p, "resends", func(ctx context.Context, p *process) func() {
		_, err := p.Resend(ctx, "", spring, api.CampaignResend{To: to})
		m.must(err)
		return nil
	})
}

// TestALateKeeperEndsNoLaterRun: a dispatcher found a run over, and stalled until the next one had begun.
func TestALateKeeperEndsNoLaterRun(t *testing.T) {
	play(t, func(m *model) {
		a, b := m.procs[0], m.procs[1]
		m.sends(a)
		late := m.stored()
		m.settle()
		m.resends(a, toNotOpened)
		m.calm(b, "ends", func(ctx context.Context, p *process) func() {
			m.must(p.Campaigns.end(ctx, late))
			p.Campaigns.hold(ctx, late, "bounces", "of the run before")
			return nil
		})
		if m.state != api.CampaignSending {
			t.Errorf("run 2 has begun, and the campaign is %s", m.state)
		}
	})
}

// TestPeopleOfADeadProcessGetTheNextRun: it had taken them, its campaign was cancelled, and sent to newcomers
// before the lease of its batch had ended.
func TestPeopleOfADeadProcessGetTheNextRun(t *testing.T) {
	play(t, func(m *model) {
		a, b := m.procs[0], m.procs[1]
		m.sends(a)
		m.calm(a, "takes people and dies", func(ctx context.Context, p *process) func() {
			if m.takes(ctx, p) == nil {
				t.Error("it took nobody")
			}
			p.die()
			return nil
		})
		m.calm(b, "cancels", func(ctx context.Context, p *process) func() {
			_, err := p.Cancel(ctx, "", spring)
			m.must(err)
			return nil
		})
		m.resends(b, toNewcomers)
		m.work(b)
		m.settle()
		on := 0
		for _, p := range m.people {
			if p.on {
				on++
			}
		}
		if got := m.states(1); len(got) > 0 {
			t.Errorf("run 1: %v", got)
		}
		if got := m.states(2); got["sent"] != on {
			t.Errorf("run 2 of %d people: %v", on, got)
		}
	})
}

// takes lets a process take people of the campaign.
func (m *model) takes(ctx context.Context, p *process) *batch {
	s, _, _ := p.scheduler.take(m.clock.Now())
	if s == nil {
		return nil
	}
	b, err := p.Campaigns.claim(ctx, s)
	m.must(err)
	return b
}

// TestAReplayAndAResendAtOnceAreOneEmail: a person's dead letter is replayed, and the campaign is sent again
// to people who failed. Whichever comes first, the person gets one email.
func TestAReplayAndAResendAtOnceAreOneEmail(t *testing.T) {
	for _, c := range []struct {
		name  string
		order []string
		late  bool // people were read more than a second ago
	}{
		{"the run takes the person, and gives them back", []string{"take", "deliver", "mail"}, true},
		{"the run takes and emails the person", []string{"take", "deliver", "mail"}, false},
		{"the replay is delivered after the people were read", []string{"read", "deliver", "take", "mail"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(m *model) {
				a, b := m.procs[0], m.procs[1]
				i := slices.IndexFunc(m.people, func(p *person) bool { return p.on })
				to := m.people[i]
				m.replies[to.email] = later
				m.sends(a)
				for n := 0; m.state != api.CampaignSent; n++ {
					m.clock.Advance(time.Hour)
					m.work(a)
					m.goOn()
					if n == 50 {
						t.Fatalf("%s is %s\n%s", spring, m.state, m.story())
					}
				}
				clear(m.replies)
				for _, l := range m.letters {
					if l.to == to {
						l.replays++
						m.calm(a, "replays", func(ctx context.Context, p *process) func() {
							_, err := p.outbox.Operations.Replay(ctx, l.id, api.Corrections{})
							m.must(err)
							return nil
						}, to)
					}
				}
				m.resends(a, toFailed)
				m.calm(a, "looks", looks)
				m.clock.Advance(time.Second)
				var taken *batch
				steps := map[string]func(ctx context.Context, p *process) func(){
					"read": func(ctx context.Context, p *process) func() {
						s, _, _ := p.scheduler.take(m.clock.Now())
						s.first, _ = sendlog.ChunkOf(to.ordinal)
						m.must(p.Campaigns.read(ctx, s, s.chunk(), s.sizeOf(s.chunk())))
						return nil
					},
					"take":    func(ctx context.Context, p *process) func() { taken = m.takes(ctx, p); return nil },
					"deliver": m.deliver(m.tasks()[0]),
					"mail": func(ctx context.Context, p *process) func() {
						if taken == nil {
							t.Errorf("nobody was taken\n%s", m.story())
						} else {
							taken.work(ctx, ctx)
						}
						return nil
					},
				}
				for _, step := range c.order {
					if c.late && step == "mail" {
						m.clock.Advance(2 * time.Second)
					}
					p, name := a, step
					if step == "deliver" {
						p = b
					} else if step == "mail" {
						name = mailing
					}
					m.calm(p, name, steps[step])
				}
				m.settle()
				copies := 0
				for _, l := range m.letters {
					if l.to == to {
						copies += l.copies()
					}
				}
				if copies != 1 {
					t.Errorf("%d emails\n%s", copies, m.story())
				}
			})
		})
	}
}

// TestACampaignIsLookedAtThoughAnAnswerWasLost: a dispatcher that knew only the run before struck the
// campaign from the live ones, and did not learn so. Without another start, it finds the run.
func TestACampaignIsLookedAtThoughAnAnswerWasLost(t *testing.T) {
	play(t, func(m *model) {
		a := m.procs[0]
		m.sends(a)
		m.settle()
		before := m.stored()
		m.resends(a, toNotOpened)
		strikes := &operation{name: "finishes", what: loseAnswer}
		for ; m.eye.db.Client().SCard(m.ctx, liveKey()).Val() > 0; strikes.at++ {
			if strikes.at == 100 {
				t.Fatal("it struck nothing")
			}
			*strikes = operation{name: "finishes", what: loseAnswer, at: strikes.at}
			m.run(a, strikes, func(ctx context.Context, p *process) func() {
				if err := p.Campaigns.finish(ctx, before); err != nil {
					p.m.note("%v", err)
				}
				return nil
			})
		}
		m.settle()
		if got := m.states(2); got["sent"] == 0 {
			t.Errorf("run 2: %v", got)
		}
	})
}
