package why

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// stops returns what stops mail to the address now, the most important first.
func (q *question) stops() []api.WhyFinding {
	return slices.Concat(q.suppressed(), q.waits(), q.left(), q.digests())
}

// suppressed returns the suppressions that hold, for all mail first.
func (q *question) suppressed() (found []api.WhyFinding) {
	for _, s := range q.Suppressions {
		if s.Expired {
			continue
		}
		whom, subject := q.Address(), q.Address()
		if s.Domain != "" {
			whom, subject = "the whole domain "+s.Domain, "@"+s.Domain
		}
		kind, what, scope := "suppressed", "all mail", "the whole instance"
		switch {
		case s.List != "":
			kind, what = "unsubscribed", "mail of the list "+s.List
		case s.Reason == "unsubscribe":
			kind, what = "unsubscribed", "bulk mail and mail of lists"
		}
		var flags []string
		if s.Account != "" {
			scope, flags = "the account "+s.Account, []string{"--account", s.Account}
		}
		if s.List != "" {
			flags = append(flags, "--list", s.List)
		}
		if s.Reason == "erased" {
			f := finding("erased", &s.Created, "%s was erased on %s. Postroom has no data about earlier "+
				"messages, and %s is stopped by a suppression of %s.", q.Address(), on(s.Created), what, scope)
			f.Account = s.Account
			found = append(found, f)
			continue
		}
		f := finding(kind, &s.Created, "Since %s %s to %s is stopped by a suppression of %s: %s%s.", on(s.Created),
			what, whom, scope, meant(s.Reason), quoted(s.Response))
		f.QueueID, f.Account = s.MessageID, s.Account
		f.Do = append(f.Do, q.step("Remove the suppression", "/suppressions?q="+query(subject),
			"suppressions delete", append([]string{subject}, flags...)...))
		found = append(found, f)
	}
	slices.SortStableFunc(found, func(a, b api.WhyFinding) int { return cmp.Compare(a.Kind, b.Kind) })
	return found
}

// meant explains the reason of a suppression as text.
func meant(reason string) string {
	return cmp.Or(map[string]string{
		"unsubscribe": "it unsubscribed",
		"hard_bounce": "messages to it bounced permanently",
		"spam_report": "it reported a message as spam",
		"manual":      "someone added it manually",
	}[reason], reason)
}

// waits are the accounts and queues whose mail waits.
func (q *question) waits() (found []api.WhyFinding) {
	for _, id := range slices.Sorted(maps.Keys(q.held)) {
		f := finding("held", q.held[id].LastErrorAt, "All messages of the account %s wait, because the "+
			"account is held%s.", id,
			quoted(q.held[id].LastError))
		f.Account = id
		f.Do = append(f.Do, q.step("Test the account's login", "/accounts", "account verify", id))
		found = append(found, f)
	}
	for _, name := range slices.Sorted(maps.Keys(q.paused)) {
		what := map[string]string{"submit": "transactional mail", "bulk": "bulk mail",
			"digests": "digests", "notify": "webhooks, so that applications aren't notified"}[name]
		f := finding("paused", nil, "The queue %s is paused, which holds back %s.", name, what)
		f.Do = append(f.Do, q.resume(name)...)
		found = append(found, f)
	}
	return found
}

// left are the lists that the person left, or has not confirmed. A list with a suppression is named already.
func (q *question) left() (found []api.WhyFinding) {
	for _, s := range q.Subscribers {
		page := "/audience/" + escaped(s.Account) + "/" + escaped(s.ID)
		for _, list := range s.Lists {
			stopped := slices.ContainsFunc(q.Suppressions, func(one api.Suppression) bool {
				return !one.Expired && one.Account == s.Account && strings.EqualFold(one.List, list.ListID)
			})
			var f api.WhyFinding
			switch {
			case list.State == "left" && !stopped:
				f = finding("unsubscribed", &list.Since, "%s unsubscribed from the list %s of the account %s on %s and doesn't get its "+
					"campaigns.", q.Address(), list.ListID, s.Account, on(list.Since))
			case list.State == "pending":
				f = finding("unconfirmed", &list.Since, "%s hasn't confirmed the subscription to the list %s of the account %s, requested on "+
					"%s, and doesn't get its campaigns yet.", q.Address(), list.ListID, s.Account, on(list.Since))
				f.Do = append(f.Do, q.step("Resend the confirmation", page, "api "+
					"askAgain", q.Address(), list.ListID,
					"--account", s.Account))
			default:
				continue
			}
			f.Account = s.Account
			f.Do = append(f.Do, q.step("Show the subscriber", page, "subscribers show", q.Address(), "--account",
				s.Account))
			found = append(found, f)
		}
	}
	return found
}

// digests returns what keeps notifications from readers with the address.
func (q *question) digests() (found []api.WhyFinding) {
	for _, r := range q.Digests {
		add := func(f api.WhyFinding, steps ...api.WhyStep) {
			f.Account = r.Account
			f.Do = append(steps, q.step("Show the recipient", "", "api "+
				"getDigestRecipient", r.Recipient, "--account",
				r.Account))
			found = append(found, f)
		}
		who := "the recipient " + r.Recipient + " of the account " + r.Account
		if len(r.Runs) > 0 && (r.Runs[0].State == "failed" || r.Runs[0].State == "skipped") {
			run := r.Runs[0]
			steps := []api.WhyStep{q.step("Show the run", "", "digest run", run.Run)}
			if run.State == "failed" {
				steps = append(steps, q.step("Retry it", "", "digest retry", run.Run))
			}
			add(finding("digestFailed", run.Ended, "The last digest of %s, of %s, was %s%s.", who, run.Period,
				run.State, because(run.Reason)), steps...)
		}
		waiting := 0
		for _, n := range r.Waiting {
			waiting += n
		}
		switch {
		case waiting == 0:
		case r.PausedUntil != nil && r.PausedUntil.After(q.now):
			add(finding("digestWaiting", r.PausedUntil, "%s for %s in digests that are paused until %s.",
				notifications(waiting), who, on(*r.PausedUntil)))
		case len(r.Next) > 0:
			add(finding("digestWaiting", &r.Next[0].At, "%s for %s until the next digest on %s (%s).",
				notifications(waiting), who, on(r.Next[0].At), r.Next[0].Words),
				q.step("Send it now", "", "api sendDigest", r.Recipient, "--account", r.Account))
		default:
			add(finding("digestWaiting", nil, "%s for %s.", notifications(waiting), who))
		}
		for _, category := range slices.Sorted(maps.Keys(r.Preferences)) {
			if r.Preferences[category].Mode != "off" {
				continue
			}
			what := "notifications of the category " + category + " are off"
			if category == "*" {
				what = "all notifications without their own preference are off"
			}
			add(finding("digestOff", &r.Updated, "For %s, %s, so they aren't sent.", who, what))
		}
	}
	return found
}

func notifications(n int) string {
	if n == 1 {
		return "1 notification waits"
	}
	return plural(n, "notification") + " wait"
}
