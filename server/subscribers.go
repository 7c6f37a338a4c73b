package server

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

type subscriberRoutes struct{ audience *audience.Subscribers }

type createSubscriberInput struct {
	accountQuery
	Body api.SubscriberRequest
}

func (s subscriberRoutes) createSubscriber(ctx context.Context, in *createSubscriberInput) (api.Subscriber,
	error) {
	account, err := in.named(in.Body.Account)
	if err != nil {
		return api.Subscriber{}, err
	}
	in.Body.Account = account
	made, _, err := s.audience.Create(ctx, boundTo(ctx), in.Body)
	return made, err
}

// subscriberSelection are the filters of subscribers.
type subscriberSelection struct {
	accountQuery
	ListID        string    `query:"listId" maxLength:"63" doc:"Only those who are on this list, or left it"`
	State         string    `query:"state" enum:"pending,subscribed,left" doc:"Only those in this state on the list; needs listId"`
	Segment       string    `query:"segment" maxLength:"63" doc:"Only those that this segment selects"`
	Tag           string    `query:"tag" maxLength:"64" doc:"Only those with this tag"`
	Search        string    `query:"search" maxLength:"256" doc:"Only those with this in their address or name; case does not matter. A whole address is found without a search"`
	CreatedAfter  time.Time `query:"createdAfter" doc:"Only those that came at this time or later"`
	CreatedBefore time.Time `query:"createdBefore" doc:"Only those that came before this time"`
}

func (q subscriberSelection) query() api.SubscriberQuery {
	return api.SubscriberQuery{Account: q.Account, ListID: q.ListID, State: q.State, Tag: q.Tag,
		Segment: q.Segment,
		Search:  q.Search, CreatedAfter: given(q.CreatedAfter), CreatedBefore: given(q.CreatedBefore)}
}

// given returns a time, nil for the zero time.
func given(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

type listSubscribersInput struct {
	subscriberSelection
	PageSize int    `query:"pageSize" minimum:"1" maximum:"1000" default:"20" doc:"Maximum number of rows"`
	Cursor   string `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it. If an answer has one, there may be more rows, even if it has no rows itself"`
}

func (s subscriberRoutes) listSubscribers(ctx context.Context, in *listSubscribersInput) (api.SubscriberPage,
	error) {
	q := in.query()
	q.Cursor, q.PageSize = in.Cursor, cmp.Or(in.PageSize, 20)
	return s.audience.Page(ctx, boundTo(ctx), q)
}

type subscriberInput struct {
	accountQuery
	Subscriber string `path:"subscriber" maxLength:"512" doc:"Id or address of the subscriber"`
}

func (in *subscriberInput) of() api.SubscriberAccount {
	return api.SubscriberAccount{Account: in.Account}
}

func (s subscriberRoutes) getSubscriber(ctx context.Context, in *subscriberInput) (api.Subscriber, error) {
	return s.audience.Get(ctx, boundTo(ctx), in.of(), in.Subscriber)
}

func (s subscriberRoutes) deleteSubscriber(ctx context.Context, in *subscriberInput) (api.Deleted, error) {
	deleted, err := s.audience.Delete(ctx, boundTo(ctx), in.of(), in.Subscriber)
	return api.Deleted{Deleted: deleted}, err
}

func (s subscriberRoutes) listConsents(ctx context.Context, in *subscriberInput) (api.ConsentHistory, error) {
	return s.audience.Consents(ctx, boundTo(ctx), in.of(), in.Subscriber)
}

type updateSubscriberInput struct {
	subscriberInput
	Body api.SubscriberPatch
}

func (s subscriberRoutes) updateSubscriber(ctx context.Context, in *updateSubscriberInput) (api.Subscriber,
	error) {
	account, err := in.named(in.Body.Account)
	if err != nil {
		return api.Subscriber{}, err
	}
	return s.audience.Update(ctx, boundTo(ctx), api.SubscriberAccount{Account: account}, in.Subscriber, in.Body)
}

type subscribeInput struct {
	subscriberInput
	Body api.SubscribeRequest
}

func (s subscriberRoutes) subscribe(ctx context.Context, in *subscribeInput) (api.Subscriber, error) {
	account, err := in.named(in.Body.Account)
	if err != nil {
		return api.Subscriber{}, err
	}
	return s.audience.Subscribe(ctx, boundTo(ctx), api.SubscriberAccount{Account: account}, in.Subscriber,
		in.Body)
}

type leaveListInput struct {
	subscriberInput
	listInput
}

func (s subscriberRoutes) leaveList(ctx context.Context, in *leaveListInput) (api.ListLeft, error) {
	left, err := s.audience.Leave(ctx, boundTo(ctx), in.of(), in.Subscriber, in.ListID,
		audience.SourceAPI)
	return api.ListLeft{Deleted: left, ListID: in.ListID}, err
}

// aboutSubscriber are the inputs of changes of a subscriber. The audit log gets who was changed by id, and
// nothing that names a person: its entries can't be erased.
type aboutSubscriber interface {
	object(ctx context.Context, all *audience.Subscribers, bound string) (id, account string)
}

func (in *createSubscriberInput) object(_ context.Context, _ *audience.Subscribers, bound string) (id,
	account string) {
	return "", cmp.Or(in.Account, in.Body.Account, bound, audience.DefaultAccount)
}

func (in *subscriberInput) object(ctx context.Context, all *audience.Subscribers, bound string) (id,
	account string) {
	return subscriberObject(ctx, all, in.Subscriber, cmp.Or(in.Account, bound, audience.DefaultAccount))
}

func (in *updateSubscriberInput) object(ctx context.Context, all *audience.Subscribers, bound string) (id,
	account string) {
	return subscriberObject(ctx, all, in.Subscriber,
		cmp.Or(in.Account, in.Body.Account, bound, audience.DefaultAccount))
}

func (in *subscribeInput) object(ctx context.Context, all *audience.Subscribers, bound string) (id,
	account string) {
	return subscriberObject(ctx, all, in.Subscriber,
		cmp.Or(in.Account, in.Body.Account, bound, audience.DefaultAccount))
}

func subscriberObject(ctx context.Context, all *audience.Subscribers, name, account string) (string, string) {
	if !strings.Contains(name, "@") {
		return name, account
	}
	found, err := all.Get(ctx, "", api.SubscriberAccount{Account: account}, name)
	if err != nil {
		return "", account
	}
	return found.ID, account
}

// subscriberState is what the audit log compares of a subscriber: nothing that names a person.
type subscriberState struct {
	Account string             `json:"account"`
	Version int                `json:"version"`
	Lists   []api.Subscription `json:"lists"`
}

// subscriberSeen returns what the audit log compares of a subscriber; nil: there is none.
func subscriberSeen(ctx context.Context, all *audience.Subscribers, o api.AuditObject) (any, error) {
	s, err := all.Get(ctx, "", api.SubscriberAccount{Account: o.Account}, o.ID)
	return found(subscriberState{s.Account, s.Version, s.Lists}, err)
}
