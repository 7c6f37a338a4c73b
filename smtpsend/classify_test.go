package smtpsend

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// labelled is a real reply and what a person made of it.
type labelled struct {
	provider, text string
	evidence       Evidence
	verdict        Verdict
	suppress       bool
}

func readLabelled(t *testing.T, file string) []labelled {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var out []labelled
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 8 {
			t.Fatalf("%d columns in %q", len(f), line)
		}
		code, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatal(err)
		}
		// As it would come off the wire, so that the reading of enhanced codes is part of what is measured.
		text := f[4]
		if f[3] != "-" {
			text = f[3] + " " + text
		}
		r := reply{code: code, text: text}
		enhanced, words := r.enhanced()
		phase := Phase(f[1])
		if phase == "any" {
			phase = ""
		}
		out = append(out, labelled{
			provider: f[0], text: r.line(), verdict: Verdict(f[5]), suppress: f[6] == "yes",
			evidence: Evidence{Phase: phase, Code: code, Enhanced: enhanced, Text: words, Recipients: 1},
		})
	}
	return out
}

// The mistakes that cost something, with how many of each a set of replies may show.
var mistakeLimits = map[string]int{
	"gives up what passes later":         0, // mail lost
	"blames the message for the account": 0, // the whole outbox lost
	"does not give up":                   3, // attempts in vain
	"suppresses":                         0, // a living address gets no more mail
	"does not suppress":                  2, // a dead one gets more
}

// TestClassifyRealReplies holds each set of labelled replies to the limits. A label is what a person made of
// the reply, so a new miss is either a rule to widen or, rarely, a label to think over again.
func TestClassifyRealReplies(t *testing.T) {
	for _, file := range []string{"replies.tsv", "wording.tsv", "replies-further.tsv"} {
		t.Run(file, func(t *testing.T) {
			var want, got []string // the misses only
			counts := map[string]int{}
			rows := readLabelled(t, file)
			for _, row := range rows {
				j := Classify(row.evidence)
				found := mistakes(row, j)
				if len(found) == 0 {
					continue
				}
				for _, m := range found {
					counts[m]++
				}
				reply := fmt.Sprintf("%s %s %s", row.provider, row.evidence.Phase, row.text)
				want = append(want, fmt.Sprintf("%s: %s, suppress %v", reply, row.verdict, row.suppress))
				got = append(got, fmt.Sprintf("%s: %s, suppress %v, by rule %q (%s)", reply, j.Verdict, j.Suppress,
					j.Rule, strings.Join(found, ", ")))
			}
			t.Logf("%d replies, %d misses: %v", len(rows), len(got), counts)
			for m, limit := range mistakeLimits {
				if counts[m] > limit {
					t.Errorf("%d times it %s, at most %d may", counts[m], m, limit)
				}
			}
			if t.Failed() {
				t.Errorf("misses (-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// mistakes names what is wrong with a judgement. Verdicts with the same effect (a policy taken for a block, a
// throttle for a delay) aren't mistakes.
func mistakes(row labelled, j Judgement) []string {
	var found []string
	retried := j.Verdict == Soft || j.Verdict == Throttle
	switch row.verdict {
	case Soft, Throttle:
		if !retried {
			found = append(found, "gives up what passes later")
		}
	case Auth:
		if j.Verdict != Auth {
			found = append(found, "blames the message for the account")
		}
	default:
		if retried || j.Verdict == Auth {
			found = append(found, "does not give up")
		}
	}
	if j.Suppress && !row.suppress {
		found = append(found, "suppresses")
	}
	if !j.Suppress && row.suppress {
		found = append(found, "does not suppress")
	}
	return found
}

func TestRulesDecideTheirSamples(t *testing.T) {
	for _, want := range rules() {
		code := 550
		if want.class == '4' {
			code = 450
		}
		got, ok := matchRule(code, want.sample)
		if !ok || got.pattern != want.pattern {
			t.Errorf("%q is decided by %s %q, not by %s %q", want.sample, got.effect, got.pattern, want.effect,
				want.pattern)
		}
		if _, known := effects[want.effect]; !known {
			t.Errorf("unknown effect %q", want.effect)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"Greylisted for 300 seconds":                                         5 * time.Minute,
		"please try again in 5 minutes":                                      5 * time.Minute,
		"Try again after 2 hours":                                            2 * time.Hour,
		"Try again after Mon, 04 May 2026 12:30:00 GMT":                      30 * time.Minute,
		"Try again after Mon, 4 May 2026 12:30:00 +0000":                     30 * time.Minute,
		"Try again after Mon, 04 May 2026 11:30:00 GMT":                      0,
		"Greylisting in action, please come back in 00:05:00":                5 * time.Minute,
		"wait 999999 hours":                                                  24 * time.Hour,
		"try again later":                                                    0,
		"see http://postgrey.example/help/300":                               0,
		"[192.0.2.1 13] in 5 different places you sent mail 550 times today": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestEnhancedCodes(t *testing.T) {
	for _, row := range []struct {
		name, text, code, words string
		class                   int
	}{
		{"plain", "5.1.1 User unknown", "5.1.1", "User unknown", 550},
		{"hash", "#5.1.0 Address rejected.", "5.1.0", "Address rejected.", 550},
		{"parentheses", "(#5.1.1) no such user", "5.1.1", "no such user", 550},
		{"colon", "5.7.1: denied", "5.7.1", "denied", 550},
		{"every line", "5.1.1 User\n5.1.1 unknown", "5.1.1", "User unknown", 550},
		{"an IP address is no code", "192.168.1 blocked", "", "192.168.1 blocked", 550},
		{"nor is a longer one", "5.1.1.1 blocked", "", "5.1.1.1 blocked", 550},
		{"the reply code's class wins", "5.1.1 try later", "", "5.1.1 try later", 450},
		{"alone", "5.1.1", "5.1.1", "", 550},
		{"empty", "", "", "", 550},
	} {
		code, words := reply{code: row.class, text: row.text}.enhanced()
		if diff := cmp.Diff([]string{row.code, row.words}, []string{code, words}); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	e := Evidence{Phase: PhaseRcpt, Code: 550, Enhanced: "5.1.1",
		Text: "<neko@example.co.jp>: Recipient address rejected: User unknown in virtual mailbox table"}
	b.ReportAllocs()
	for b.Loop() {
		Classify(e)
	}
}
