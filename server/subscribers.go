package server

import (
	"context"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

type subscriberRoutes struct{ audience *audience.Subscribers }

type createSubscriberInput struct{ newBody[api.SubscriberRequest] }

func (s subscriberRoutes) createSubscriber(ctx context.Context, in *createSubscriberInput) (api.Subscriber,
	error) {
	made, _, err := s.audience.Create(ctx, boundTo(ctx), in.Body)
	return made, err
}

type subscriberInput struct {
	api.AccountQuery
	Subscriber string `path:"subscriber" maxLength:"512" doc:"ID or address of the subscriber"`
}

func (in subscriberInput) key() (api.AccountQuery, string) { return in.AccountQuery, in.Subscriber }

func (s subscriberRoutes) deleteSubscriber(ctx context.Context, in *subscriberInput) (api.Deleted, error) {
	deleted, err := s.audience.Delete(ctx, boundTo(ctx), in.AccountQuery, in.Subscriber)
	return api.Deleted{Deleted: deleted}, err
}

type updateSubscriberInput struct {
	subscriberInput
	Body api.SubscriberPatch
}

func (s subscriberRoutes) updateSubscriber(ctx context.Context, in *updateSubscriberInput) (api.Subscriber,
	error) {
	return s.audience.Update(ctx, boundTo(ctx), api.AccountQuery{Account: in.Body.Account}, in.Subscriber,
		in.Body)
}

type subscribeInput struct {
	subscriberInput
	Body api.SubscribeRequest
}

func (s subscriberRoutes) subscribe(ctx context.Context, in *subscribeInput) (api.Subscriber, error) {
	return s.audience.Subscribe(ctx, boundTo(ctx), api.AccountQuery{Account: in.Body.Account}, in.Subscriber,
		in.Body)
}

type leaveListInput struct {
	subscriberInput
	listInput
}

func (s subscriberRoutes) leaveList(ctx context.Context, in *leaveListInput) (api.ListLeft, error) {
	left, err := s.audience.Leave(ctx, boundTo(ctx), in.AccountQuery, in.Subscriber, in.ListID,
		audience.SourceAPI)
	return api.ListLeft{Deleted: left, ListID: in.ListID}, err
}

func (in *createSubscriberInput) object(bound string) (id, account string) {
	return "", firstAccount(in.Body.Account, bound)
}

func (in *subscriberInput) object(bound string) (id, account string) {
	return in.Subscriber, firstAccount(in.Account, bound)
}

func (in *updateSubscriberInput) object(bound string) (id, account string) {
	return in.Subscriber, firstAccount(in.Body.Account, bound)
}

func (in *subscribeInput) object(bound string) (id, account string) {
	return in.Subscriber, firstAccount(in.Body.Account, bound)
}

// subscriberID returns the id of a subscriber that a request names by id or address, or "".
func subscriberID(ctx context.Context, all *audience.Subscribers, account, name string) string {
	if !strings.Contains(name, "@") {
		return name
	}
	found, _ := all.Get(ctx, "", api.SubscriberAccount{Account: account}, name) // or an empty one
	return found.ID
}

// subscriberState is what the audit log compares in a subscriber: nothing that names a person.
type subscriberState struct {
	Account string             `json:"account"`
	Version int                `json:"version"`
	Lists   []api.Subscription `json:"lists"`
}

// subscriberSeen returns what the audit log compares of a subscriber; nil if there is none.
func subscriberSeen(ctx context.Context, all *audience.Subscribers, o api.AuditObject) (any, error) {
	s, err := all.Get(ctx, "", api.SubscriberAccount{Account: o.Account}, o.ID)
	return found(subscriberState{s.Account, s.Version, s.Lists}, err)
}
