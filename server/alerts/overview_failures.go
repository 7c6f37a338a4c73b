package alerts

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
)

const (
	reasonsAtMost = 5
	reasonLength  = 200 // characters
)

// failures counts the reasons of the period's newest permanently failed messages.
func (o *Overview) failures(ctx context.Context, out *api.Overview) error {
	failed, err := o.Messages(ctx, api.LogQuery{Status: api.StatusFailed, Account: out.Account,
		CreatedAfter: out.From, PageSize: lookedAt})
	if err != nil {
		return err
	}
	dead, err := o.Messages(ctx, api.LogQuery{Status: api.StatusDead, Account: out.Account, PageSize: 1})
	if err != nil {
		return err
	}
	out.Flow.Dead = dead.Total
	out.Failures = api.OverviewFailures{Total: failed.Total, Counted: len(failed.Messages),
		Reasons: topReasons(failed.Messages)}
	return nil
}

// topReasons returns the most frequent reasons for failures, each with its newest message.
func topReasons(failed []api.LoggedMessage) []api.OverviewReason {
	at, all := map[string]int{}, []api.OverviewReason{}
	for _, m := range failed {
		key, text := reasonOf(m)
		i, known := at[key]
		if !known {
			i = len(all)
			at[key], all = i, append(all, api.OverviewReason{Text: text, QueueID: m.QueueID})
		}
		all[i].Messages++
	}
	slices.SortStableFunc(all, func(a, b api.OverviewReason) int { return cmp.Compare(b.Messages, a.Messages) })
	return all[:min(len(all), reasonsAtMost)]
}

var (
	address  = regexp.MustCompile(`<?[^\s<>()"',;:]+@[^\s<>()"',;]+>?`)
	enhanced = regexp.MustCompile(`\b[245]\.\d{1,3}\.\d{1,3}\b`)
	digits   = regexp.MustCompile(`[0-9a-fA-F]*\d[0-9a-fA-F]*`)
)

// reasonOf returns what messages that failed for the same reason have in common, and the reason as text.
// Relays put addresses, ids and times into their replies, so replies with the same codes count as the same,
// and without codes, replies with the same text.
func reasonOf(m api.LoggedMessage) (key, text string) {
	text = cmp.Or(m.Reason, "no reason is known")
	if m.Error != nil {
		text = m.Error.Message
	}
	text = strings.Join(strings.Fields(address.ReplaceAllString(text, "<…>")), " ")
	if runes := []rune(text); len(runes) > reasonLength {
		text = string(runes[:reasonLength]) + "…"
	}
	if m.Error != nil && m.Error.StatusCode != nil {
		if code := enhanced.FindString(text); code != "" {
			return strconv.Itoa(*m.Error.StatusCode) + " " + code, text
		}
	}
	return digits.ReplaceAllString(text, "0"), text
}
