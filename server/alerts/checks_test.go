package alerts

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

func TestFindings(t *testing.T) {
	t.Parallel()
	lane := Queue{Name: "submit", Age: 5 * time.Minute}
	age := func(counts ...queue.Counts) finding { return judgeAge(lane, counts) }
	paused := func(counts ...queue.Counts) finding { return judgePause("submit", counts, time.Hour, start) }
	failures := func(sent, failed int) api.Counters { return api.Counters{SentHour: sent, FailedHour: failed} }
	for name, row := range map[string]struct {
		found finding
		wrong bool
		value float64
		text  string
	}{
		"an intact audit log": {judgeAudit(true, ""), false, 0, ""},
		"a changed audit log": {judgeAudit(false, "an entry is missing"), true, 1,
			"tampered with: an entry is missing"},
		"nothing waits": {age(queue.Counts{}), false, 0, ""},
		"work waits":    {age(queue.Counts{Latency: 299 * time.Second}), false, 299, ""},
		"work waits too long": {
			age(queue.Counts{Latency: time.Second}, queue.Counts{Latency: 300 * time.Second}), true, 300,
			"has waited for 5m0s. No job is being processed"},
		"workers can't keep up": {age(queue.Counts{Latency: time.Hour, Active: 3}), true, 3600,
			"can't keep up"},
		"what waits is paused": {age(queue.Counts{Latency: time.Hour, Paused: true}), false, 0, ""},
		"one part is paused": {age(queue.Counts{Latency: time.Hour, Paused: true},
			queue.Counts{Latency: 400 * time.Second}), true, 400, ""},
		"not paused": {paused(queue.Counts{}), false, 0, ""},
		"just paused": {paused(queue.Counts{Paused: true, PausedAt: start.Add(-time.Minute)}),
			false, 60, ""},
		"paused for long": {
			paused(queue.Counts{}, queue.Counts{Paused: true, PausedAt: start.Add(-time.Hour)}), true, 3600,
			"postroom queue resume submit"},
		"paused, nobody knows when": {paused(queue.Counts{Paused: true}), false, 0, ""},
		"bounces": {judgeRate(bounceRate, "ses", 500, 10, 10_000, .05), true, .05,
			"In a day, 500 of 10000 recipients of messages through gateway ses had invalid"},
		"few bounces":            {judgeRate(bounceRate, "ses", 499, 10, 10_000, .05), false, .0499, ""},
		"bounces of little mail": {judgeRate(bounceRate, "ses", 9, 10, 9, .05), false, 1, ""},
		"complaints of no mail":  {judgeRate(complaintRate, "ses", 3, 3, 0, .001), false, 0, ""},
		"complaints": {judgeRate(complaintRate, "ses", 3, 3, 3000, .001), true, .001,
			"3 of 3000 recipients of messages through gateway ses complained, 0.10 %"},
		"no failures":           {judgeFailures(failures(10, 0), 100, 0.5), false, 0, ""},
		"failures, few of many": {judgeFailures(failures(1000, 99), 100, 0.5), false, 99, ""},
		"many failures": {judgeFailures(failures(10_000, 100), 100, 0.5), true, 100,
			"100 messages failed permanently in the last hour, 1 %"},
		"half of them":                 {judgeFailures(failures(10, 10), 100, 0.5), true, 0.5, "50 %"},
		"half, of too few to say":      {judgeFailures(failures(9, 9), 100, 0.5), false, 9, ""},
		"judged by their share alone":  {judgeFailures(failures(1000, 900), 0, 0.5), false, 900.0 / 1900, ""},
		"a large share alone":          {judgeFailures(failures(1000, 1000), 0, 0.5), true, 0.5, ""},
		"judged by their number alone": {judgeFailures(failures(0, 50), 100, 0), false, 50, ""},
		"room in the outbox":           {judgeLive(89, 100), false, 89, ""},
		"hardly room":                  {judgeLive(90, 100), true, 90, "From 100 on, new messages are refused"},
		"accounts are fine":            {judgeAccounts(nil), false, 0, ""},
		"an account is not":            {judgeAccounts([]string{"shop"}), true, 1, "refused: shop."},
		"many are not": {judgeAccounts([]string{"a", "b", "c", "d", "e", "f", "g"}), true, 7,
			"a, b, c, d, e and 2 more."},
		"digests in time": {judgeDigests(599*time.Second, 10*time.Minute), false, 599, ""},
		"late digests": {judgeDigests(600*time.Second, 10*time.Minute), true, 600,
			"is 10m0s late. Check that a process with role worker runs."},
		"memory": {judgeMemory(0.67, 0.75), false, 0.67, ""},
		"memory gets short": {judgeMemory(0.70, 0.75), true, 0.70,
			"70 % of its maxmemory. From 75 % on, new messages are refused"},
		"memory is short": {judgeMemory(0.80, 0.75), true, 0.80, "New messages are refused"},
		"durable":         {judgeDurability(redisdb.Durability{}), false, 0, ""},
		"not durable": {judgeDurability(redisdb.Durability{Warnings: []string{"One.", "Two."}}),
			true, 2, "One. Two."},
	} {
		t.Run(name, func(t *testing.T) {
			if row.found.wrong != row.wrong || row.found.value != row.value {
				t.Errorf("wrong %v, value %v; want %v, %v", row.found.wrong, row.found.value, row.wrong, row.value)
			}
			if !strings.Contains(row.found.text, row.text) {
				t.Errorf("text %q, want one with %q", row.found.text, row.text)
			}
		})
	}
}
