package smtpsend

import (
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

// TestClassifyRealReplies counts the mistakes that cost something: mail given up that would have passed, mail given up for the
// account's trouble, mail retried in vain, living addresses suppressed, dead ones kept.
func TestClassifyRealReplies(t *testing.T) {
	for _, file := range []string{"replies.tsv", "wording.tsv"} {
		t.Run(file, func(t *testing.T) { countMistakes(t, readLabelled(t, file)) })
	}
}

func countMistakes(t *testing.T, rows []labelled) {
	var lost, blamed, vain, falseSuppress, missedSuppress int
	for _, row := range rows {
		j := Classify(row.evidence)
		retried := j.Verdict == Soft || j.Verdict == Throttle
		var wrong []string
		switch row.verdict {
		case Soft, Throttle:
			if !retried {
				lost++
				wrong = append(wrong, "gives up what passes later")
			}
		case Auth:
			if j.Verdict != Auth {
				blamed++
				wrong = append(wrong, "blames the message for the account")
			}
		default:
			if retried || j.Verdict == Auth {
				vain++
				wrong = append(wrong, "does not give up")
			}
		}
		if j.Suppress && !row.suppress {
			falseSuppress++
			wrong = append(wrong, "suppresses")
		}
		if !j.Suppress && row.suppress {
			missedSuppress++
			wrong = append(wrong, "does not suppress")
		}
		if len(wrong) > 0 {
			t.Logf("%s %s %s: want %s, got %s by %q: %s", row.provider, row.evidence.Phase, row.text, row.verdict, j.Verdict, j.Rule, strings.Join(wrong, ", "))
		} else if j.Verdict != row.verdict {
			t.Logf("finer: %s %s %s: want %s, got %s by %q", row.provider, row.evidence.Phase, row.text, row.verdict, j.Verdict, j.Rule)
		}
	}
	got := map[string]int{"lost": lost, "blamed": blamed, "vain": vain, "false suppress": falseSuppress, "missed suppress": missedSuppress}
	t.Logf("%d replies: %v", len(rows), got)
	if lost > 0 || blamed > 0 || vain > 3 || falseSuppress > 0 || missedSuppress > 2 {
		t.Errorf("too many mistakes: %v", got)
	}
}

func TestRulesDecideTheirSamples(t *testing.T) {
	for _, want := range rules() {
		code := 550
		if want.class == '4' {
			code = 450
		}
		got, ok := matchRule(code, want.sample)
		if !ok || got.pattern.String() != want.pattern.String() {
			t.Errorf("%q is decided by %s %q, not by %s %q", want.sample, got.effect, got.pattern, want.effect, want.pattern)
		}
		if _, known := byEffect(Evidence{Phase: PhaseRcpt, Code: code}, want.effect); !known {
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
	e := Evidence{Phase: PhaseRcpt, Code: 550, Enhanced: "5.1.1", Text: "<neko@example.co.jp>: Recipient address rejected: User unknown in virtual mailbox table"}
	b.ReportAllocs()
	for b.Loop() {
		Classify(e)
	}
}
