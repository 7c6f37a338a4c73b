package server

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/newsletter/audience"
)

// eventsBody is the size limit of a body with 1,000 events.
const eventsBody = 8 << 20

type digestRoutes struct{ digests *digest.Digests }

// digestEventsRequest is api.DigestEventsRequest, whose events each have their own faults.
type digestEventsRequest struct {
	Account string `json:"account,omitempty" maxLength:"256" doc:"Account that sends the digest. Defaults to default"`
	api.DigestEvent
	Events []eventRow `json:"events,omitempty" maxItems:"1000" doc:"Events to accept instead of a single event. Each has its own result"`
}

type eventRow struct {
	api.DigestEvent
	faults []fault.Field // found while it was read
}

type takeDigestEventsInput struct {
	api.AccountQuery
	Body digestEventsRequest
}

// takeDigestEvents passes an unreadable event on as an empty one, which is refused like any other invalid
// event. The answer has the errors of its reading.
func (r digestRoutes) takeDigestEvents(ctx context.Context, in *takeDigestEventsInput) (
	none api.DigestEventsAnswer, _ error) {
	req := api.DigestEventsRequest{Account: in.Body.Account, DigestEvent: in.Body.DigestEvent}
	if in.Body.Events != nil {
		req.Events = make([]api.DigestEvent, len(in.Body.Events))
	}
	for i, row := range in.Body.Events {
		if row.faults == nil {
			req.Events[i] = row.DigestEvent
		}
	}
	answer, err := r.digests.AddEvents(ctx, boundTo(ctx), req)
	if err != nil {
		return none, err
	}
	for i, row := range in.Body.Events {
		if row.faults != nil {
			answer.Events[i] = refusedEvent(row.faults)
		}
		for n, f := range answer.Events[i].Fields {
			answer.Events[i].Fields[n].Message = labelled(fault.Field{Key: f.Key, Message: f.Message})
		}
	}
	return answer, nil
}

func refusedEvent(faults []fault.Field) api.DigestEventResult {
	for i := range faults {
		faults[i].Key = cmp.Or(faults[i].Key, "events") // the event isn't an object
	}
	err := fault.InvalidFields(faults)
	row := api.DigestEventResult{StatusCode: api.StatusOf(fault.KindOf(err)), Error: err.Error()}
	for _, f := range faults {
		row.Fields = append(row.Fields, api.ProblemField{Key: f.Key, Message: f.Message})
	}
	return row
}

type deleteDigestEventsInput struct{ api.DigestEventRemoval }

func (r digestRoutes) deleteDigestEvents(ctx context.Context, in *deleteDigestEventsInput) (
	api.DigestEventsDeleted, error) {
	return r.digests.Remove(ctx, boundTo(ctx), in.DigestEventRemoval)
}

type createDigestKindInput struct{ newBody[api.DigestKind] }

type digestKindInput struct {
	api.AccountQuery
	Category string `path:"category" maxLength:"64" doc:"The category. Write / as %2F"`
}

func (in digestKindInput) id() string { return in.Category }

func (in digestKindInput) key() (api.AccountQuery, string) { return in.AccountQuery, in.Category }

type updateDigestKindInput struct {
	digestKindInput
	body[api.DigestKindPatch]
}

func (r digestRoutes) deleteDigestKind(ctx context.Context, in *digestKindInput) (api.Deleted, error) {
	err := r.digests.Kinds.Delete(ctx, boundTo(ctx), in.AccountQuery, in.Category)
	return api.Deleted{Deleted: err == nil}, err
}

type digestRecipientInput struct {
	api.AccountQuery
	Recipient string `path:"recipient" maxLength:"256" doc:"Your ID for the recipient. Write / as %2F"`
}

func (in digestRecipientInput) id() string { return in.Recipient }

func (in digestRecipientInput) key() (api.AccountQuery, string) { return in.AccountQuery, in.Recipient }

type writeDigestRecipientInput struct {
	digestRecipientInput
	body[api.DigestRecipientRequest]
}

func (r digestRoutes) putDigestRecipient(ctx context.Context, in *writeDigestRecipientInput) (
	api.DigestRecipient, error) {
	stored, _, err := r.digests.Put(ctx, boundTo(ctx), in.Recipient, in.Body)
	return stored, err
}

func (r digestRoutes) deleteDigestRecipient(ctx context.Context, in *digestRecipientInput) (api.Deleted,
	error) {
	err := r.digests.Delete(ctx, boundTo(ctx), in.AccountQuery, in.Recipient)
	return api.Deleted{Deleted: err == nil}, err
}

func (r digestRoutes) computeDigestTimes(_ context.Context, in *body[api.DigestTimesRequest]) (
	api.DigestTimes, error) {
	return r.digests.Times(in.Body)
}

type digestRunInput struct {
	Run string `path:"run" maxLength:"64" doc:"ID of the run"`
}

func (in digestRunInput) id() string { return in.Run }

func firstAccount(all ...string) string { return cmp.Or(append(all, audience.DefaultAccount)...) }

func (in *createDigestKindInput) object(bound string) (id, account string) {
	return in.Body.Category, firstAccount(in.Body.Account, bound)
}

func (in *digestKindInput) object(bound string) (id, account string) {
	return in.Category, firstAccount(in.Account, bound)
}

func (in *updateDigestKindInput) object(bound string) (id, account string) {
	return in.Category, firstAccount(in.Body.Account, bound)
}

func (in *digestRecipientInput) object(bound string) (id, account string) {
	return unnamed(in.Recipient), firstAccount(in.Account, bound)
}

func (in *writeDigestRecipientInput) object(bound string) (id, account string) {
	return unnamed(in.Recipient), firstAccount(in.Body.Account, bound)
}

func (*writeDigestRecipientInput) namesPeople() {}

func (in *deleteDigestEventsInput) object(bound string) (id, account string) {
	if len(in.Recipients) == 1 {
		id = unnamed(in.Recipients[0])
	}
	return id, firstAccount(in.Account, bound)
}

func (*deleteDigestEventsInput) namesPeople() {}

// unnamed returns the id of a reader for the audit log, whose entries can't be erased; empty for an address.
func unnamed(recipient string) string {
	if strings.Contains(recipient, "@") {
		return ""
	}
	return recipient
}

// readerState is what the audit log compares in a digest recipient: nothing that names a person.
type readerState struct {
	Preferences api.DigestPreferences `json:"preferences"`
	Quiet       []api.DigestQuiet     `json:"quiet"`
	PausedUntil *time.Time            `json:"pausedUntil,omitempty"`
	Version     int                   `json:"version"`
}

// digestRunState is what the audit log compares in a run.
type digestRunState struct {
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Account string `json:"account"`
}

// digestSeen returns what the audit log compares in a digest object, or nil if there is none.
func digestSeen(ctx context.Context, all *digest.Digests, o api.AuditObject) (any, error) {
	of := api.DigestAccount{Account: o.Account}
	switch o.Kind {
	case "digestKind":
		return found(all.Kinds.Get(ctx, "", of, o.ID))
	case "digestRun":
		run, err := all.Runs.Get(ctx, "", o.ID)
		return found(digestRunState{run.State, run.Reason, run.Account}, err)
	}
	one, err := all.Get(ctx, "", of, o.ID)
	return found(readerState{one.Preferences, one.Quiet, one.PausedUntil, one.Version}, err)
}
