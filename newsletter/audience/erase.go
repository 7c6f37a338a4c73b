package audience

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

// Accounts returns all accounts that ever had subscribers, also deleted ones, in order.
func (s *Subscribers) Accounts(ctx context.Context) ([]string, error) {
	accounts, err := s.db.Client().HKeys(ctx, ordinalsKey()).Result()
	slices.Sort(accounts)
	return accounts, redisdb.Failed(err, "list the accounts that have subscribers")
}

// AccountsOf returns the accounts whose index has an address, in order.
func (s *Subscribers) AccountsOf(ctx context.Context, address string) (having []string, _ error) {
	accounts, err := s.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(accounts, 1000) {
		pipe, has := s.db.Client().Pipeline(), make([][]*redis.BoolCmd, len(some))
		for i, account := range some {
			for _, form := range message.AddressForms(folded(address)) {
				at := indexed(account, form)
				has[i] = append(has[i], pipe.HExists(ctx, at.key, at.field))
			}
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, redisdb.Failed(err, "look for an address among the subscribers of all accounts")
		}
		for i, account := range some {
			if slices.ContainsFunc(has[i], (*redis.BoolCmd).Val) {
				having = append(having, account)
			}
		}
	}
	return having, nil
}

// Erase removes the subscriber of an address with everything that is stored: the record with its proofs, the
// index, and the states on lists. tally gets the number of subscribers and of subscriptions before they go.
// You can repeat it.
func (s *Subscribers) Erase(ctx context.Context, account, address string,
	tally func(subscribers, lists int) error) error {
	address = folded(address)
	_, ordinal, r, err := s.find(ctx, account, address)
	if err != nil {
		return err
	}
	if r != nil {
		// the past events of the subscriber are erased next, from where they are followed
		if err := (waiting{s.db}).handedOn(ctx, slotOf(ordinal).chunk); err != nil {
			return err
		}
		if err := tally(1, len(r.lists)); err != nil {
			return err
		}
		removed, err := s.remove(ctx, account, ordinal)
		if err != nil || !removed {
			return err
		}
	}
	// the index of an interrupted change, and of an earlier version
	for _, form := range message.AddressForms(address) {
		has, _, _, err := s.findForm(ctx, account, form)
		if err == nil {
			_, err = s.claim(ctx, account, form, has, "")
		}
		if err != nil {
			return err
		}
		if err := s.db.Client().Del(ctx, askedKey(account, form)).Err(); err != nil {
			return redisdb.Failed(err, "forget the mails that asked an erased person")
		}
	}
	return nil
}

// Personal returns the subscriber of an address with the whole history of the subscriptions. NotFound: there
// is none.
func (s *Subscribers) Personal(ctx context.Context, account, address string) (api.PersonalSubscriber, error) {
	of := api.SubscriberAccount{Account: account}
	sub, err := s.Get(ctx, "", of, address)
	if err != nil {
		return api.PersonalSubscriber{}, err
	}
	history, err := s.Consents(ctx, "", of, sub.ID)
	return api.PersonalSubscriber{Subscriber: sub, Consents: history.Consents}, err
}

// errErased is the error for an import's line.
const errErased = "is of a person who was erased"

// refuseErased returns Conflict, code PersonErased, if the person of an address was erased: nothing is stored
// of them again.
func refuseErased(ctx context.Context, stops *suppression.Store, account, address string) error {
	erased, err := stops.Erased(ctx, account, address)
	if err == nil && erased[0] {
		err = fault.New(fault.Conflict, "PersonErased",
			"The person with this address was erased. If they want to return, delete the suppression of "+
				"the address")
	}
	return err
}

// erased makes rows of erased people bad.
func (i *importing) erased(ctx context.Context, rows []row) error {
	addresses := make([]string, len(rows))
	for n := range rows {
		addresses[n] = rows[n].in.Email
	}
	erased, err := i.s.Suppressions.Erased(ctx, i.account, addresses...)
	if err != nil {
		return err
	}
	for n := range rows {
		if erased[n] && rows[n].result == undecided {
			rows[n].result, rows[n].fault = bad, errErased
		}
	}
	return nil
}
