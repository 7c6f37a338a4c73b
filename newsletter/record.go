package newsletter

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

// stored is a campaign as it is stored.
type stored struct {
	api.Campaign
	Number        uint32            `json:"number"`
	Version       int               `json:"version"`
	State         string            `json:"state"`
	Reason        string            `json:"reason,omitempty"`
	Detail        string            `json:"detail,omitempty"`
	Waits         *api.CampaignWait `json:"waits,omitempty"`      // while it is sending
	At            *time.Time        `json:"at,omitempty"`         // when it starts, if it is scheduled
	Permission    int               `json:"permission,omitempty"` // its version: each change of state raises it
	Runs          []sending         `json:"runs,omitempty"`
	PendingEvents []pendingEvent    `json:"pendingEvents,omitempty"` // events that must be emitted
	// a caller bound to the account wrote or started it, so it names only the account's senders
	Bound bool `json:"bound,omitempty"`
	// the token that started it: the id by which its quota is counted, and that quota; nil if it has none
	Token      string          `json:"token,omitempty"`
	TokenQuota *api.TokenQuota `json:"tokenQuota,omitempty"`
}

// sending is a run.
type sending struct {
	Began     time.Time         `json:"began"`
	Ended     *time.Time        `json:"ended,omitempty"`
	Sent      bool              `json:"sent,omitempty"` // it ended because no one was left
	End       uint32            `json:"end"`            // the first ordinal that it leaves out
	To        string            `json:"to,omitempty"`
	Subject   string            `json:"subject,omitempty"`
	Snapshots []outbox.Snapshot `json:"snapshots"`        // by variant; one if there are none
	Tested    *time.Time        `json:"tested,omitempty"` // when all mail of the test was tried
	Winner    string            `json:"winner,omitempty"`
	Decided   *time.Time        `json:"decided,omitempty"`
	Audience  int               `json:"audience,omitempty"` // as it was counted
	Counted   bool              `json:"counted,omitempty"`
	Recounted *time.Time        `json:"recounted,omitempty"`
	Forgiven  []string          `json:"forgiven,omitempty"` // reasons that do not hold it again
}

// cancelled reports whether a run ended before its people had their mail.
func (r sending) cancelled() bool { return r.Ended != nil && !r.Sent }

// pendingEvent is an event about a campaign that must be emitted.
type pendingEvent struct {
	ID            string     `json:"id"`
	Type          event.Type `json:"type"`
	At            time.Time  `json:"at"`
	State, Reason string
	Run           int
}

// campaign is a campaign as it is used.
type campaign struct {
	stored
	id               string
	created, updated time.Time
}

func (c *campaign) run() *sending {
	if len(c.Runs) == 0 {
		return nil
	}
	return &c.Runs[len(c.Runs)-1]
}

// key names the last run in the send log.
func (s *stored) key() sendlog.Run { return sendlog.Run{Campaign: s.Number, Number: len(s.Runs)} }

// live reports whether a campaign may still change on its own.
func live(state string) bool {
	switch state {
	case api.CampaignScheduled, api.CampaignSending, api.CampaignPaused, api.CampaignHeld:
		return true
	}
	return false
}

// ended reports whether the last run of a campaign has ended.
func ended(state string) bool {
	switch state {
	case api.CampaignSent, api.CampaignCancelled, api.CampaignFailed:
		return true
	}
	return false
}

func notFound(id string) error {
	return fault.New(fault.NotFound, "CampaignNotFound",
		"There is no campaign %q. GET /v1/campaigns shows all campaigns", id)
}

func numbersKey() string { return redisdb.Key(0, "campaign-numbers") }
func liveKey() string    { return redisdb.Key(0, "campaigns-live") }

// find returns a campaign as it is stored now.
func (c *Campaigns) find(ctx context.Context, bound, id string) (*campaign, error) {
	r, err := c.store.Get(ctx, id)
	if err == nil && bound != "" && r.Value.Account != bound {
		err = notFound(id)
	}
	if err != nil {
		return nil, err
	}
	return used(r), nil
}

func used(r *records.Record[stored]) *campaign {
	return &campaign{stored: r.Value, id: r.ID, created: r.Created, updated: r.Updated}
}

// known returns a campaign as it was at most a second ago.
func (c *Campaigns) known(ctx context.Context, id string) (*campaign, error) {
	one, ok, err := c.cached.Get(ctx, id, time.Now(), func(ctx context.Context) (*campaign, bool, error) {
		one, err := c.find(ctx, "", id)
		if fault.Is(err, fault.NotFound) {
			return nil, false, nil
		}
		return one, err == nil, err
	})
	if err == nil && !ok {
		err = notFound(id)
	}
	return one, err
}

// numbered returns the campaign of a number; nil if there is none.
func (c *Campaigns) numbered(ctx context.Context, number uint32) (*campaign, error) {
	field := strconv.FormatUint(uint64(number), 10)
	id, ok, err := c.byNo.Get(ctx, field, time.Now(), func(ctx context.Context) (string, bool, error) {
		ids, err := c.DB.Client().HMGet(ctx, numbersKey(), field).Result()
		if err != nil {
			return "", false, redisdb.Failed(err, "look for campaign number %s", field)
		}
		id, ok := ids[0].(string)
		return id, ok, nil
	})
	if err != nil || !ok {
		return nil, err
	}
	one, err := c.known(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && one.Number != number {
		return nil, nil
	}
	return one, err
}

// errSame is returned by an edit that has nothing to change.
var errSame = errors.New("the campaign has that state already")

// mostChanges is how often a change is repeated if others always precede it.
const mostChanges = 20

// change replaces a campaign by the result of edit, which is called again if another change comes first.
func (c *Campaigns) change(ctx context.Context, bound, id string, edit func(*stored) error) (*campaign,
	error) {
	for n := 1; ; n++ {
		refused := false
		one, err := c.changeOnce(ctx, bound, id, func(s *stored) error {
			err := edit(s)
			refused = err != nil
			return err
		})
		pause := time.Duration(1+rand.IntN(10*n)) * time.Millisecond // callers that came together come apart
		if refused || fault.CodeOf(err) != codeChanged || n == mostChanges || !redisdb.Pause(ctx, pause) {
			return one, err
		}
	}
}

// changeOnce is change, which others may precede too often: Conflict, code CampaignChanged.
func (c *Campaigns) changeOnce(ctx context.Context, bound, id string, edit func(*stored) error) (*campaign,
	error) {
	var next stored
	err := c.store.Update(ctx, id, func(old *records.Record[stored]) (stored, error) {
		next = old.Value
		next.Runs = append([]sending(nil), old.Value.Runs...)
		if bound != "" && next.Account != bound {
			return next, notFound(id)
		}
		next.Version++
		return next, edit(&next)
	})
	if err != nil {
		return nil, err
	}
	return c.find(ctx, "", id)
}
