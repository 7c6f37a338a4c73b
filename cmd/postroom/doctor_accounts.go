package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// loginsAtOnce is the largest number of simultaneous logins.
const loginsAtOnce = 8

// accounts makes Postroom log in to the relay of every account.
func (x *exam) accounts(ctx context.Context) []finding {
	const name = "accounts"
	if x.away {
		if x.cfg.SMTP.Host == "" {
			return []finding{{name, warn, "no relay is set",
				"set smtp and from, or add an account once Postroom runs: postroom account add --help"}}
		}
		return nil
	}
	list, err := all(&session{Context: ctx, client: x.client}, api.ListAccounts,
		api.PageQuery{PageSize: maxPage})
	if err != nil {
		return []finding{{name, fail, explain(err), ""}}
	}
	if len(list) == 0 {
		return []finding{{name, warn, "there is no account: nothing can be sent",
			"set smtp and from, or: postroom account add --help"}}
	}
	for _, a := range list {
		x.meet(a.Email)
	}
	return judgeLogins(list, tryLogins(ctx, x.client, list))
}

// login is the result of trying one account's relay.
type login struct {
	answer api.VerifyAnswer
	err    error // the result of the relay is not known
	late   bool  // it did not answer in time
}

// tryLogins tries the relay of every account, a few at a time.
func tryLogins(ctx context.Context, client *api.Client, list []api.AccountInfo) []login {
	tried := make([]login, len(list))
	var trials errgroup.Group
	trials.SetLimit(loginsAtOnce)
	for i, a := range list {
		trials.Go(func() error {
			answer, err := api.VerifyAccount.Do(ctx, client, api.VerifyRequest{Account: a.Account.Account})
			tried[i] = login{answer, err, err != nil && ctx.Err() != nil}
			return nil
		})
	}
	_ = trials.Wait() // none fails
	return tried
}

// judgeLogins returns a finding for each unusable account, and one for all that were not tried in time.
func judgeLogins(list []api.AccountInfo, tried []login) []finding {
	const name = "accounts"
	var found []finding
	var late []string
	said := map[string]bool{}
	for i, l := range tried {
		a := list[i]
		who := fmt.Sprintf("%s (%s)", a.Account.Account, way(a.Account))
		switch {
		case l.late:
			late = append(late, a.Account.Account)
		case l.err != nil:
			found = append(found, finding{name, fail, who + ": " + explain(l.err), ""})
		default:
			for _, t := range trials(who, a.SMTP != nil, l.answer) {
				if !t.Success && !said[t.name] {
					said[t.name] = true // accounts share gateways
					found = append(found, finding{name, fail, t.name + ": " + t.Error, smtpsend.Advice(t.Code)})
				}
			}
		}
	}
	if len(late) > 0 {
		found = append(found, finding{name, warn, fmt.Sprintf("%d of %d relays did not answer in time: %s",
			len(late), len(list), clip(strings.Join(late, ", "), 100)),
			"give them longer: --patience 1m"})
	}
	if len(found) == 0 {
		found = []finding{{name, ok, fmt.Sprintf("%d, and every relay lets us in", len(list)), ""}}
	}
	return found
}
