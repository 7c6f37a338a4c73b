package bounce

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/postroom/postroom/smtpsend"
)

var (
	corpus = flag.String("corpus", filepath.Join("testdata", "corpus"),
		"folder with labels.tsv, mails, and not-bounces/ to score against")
	half = flag.String("half", "",
		"a or b, or a quarter: a1, a2, b1, b2: only that of the corpus, by hash of the file name")
	show = flag.Bool("show", false, "print each mail that was misread")
)

// label is the corpus' statement about an email and one recipient: labels.tsv.
type label struct {
	file, status, reason, feedback, recipient string
	hard                                      bool
}

// TestScore reads a labelled corpus and fails if less than 95 % of it is read right, an email that isn't a
// bounce is taken for one, or a living address is suppressed. By default that is testdata/corpus; -corpus=DIR
// names another with the same labels.
func TestScore(t *testing.T) {
	labels := readLabels(t)
	right, total := 0, 0
	confusion, dead, suppressed, living := map[string]int{}, 0, 0, 0
	for _, file := range sortedKeys(labels) {
		if !inHalf(file) {
			continue
		}
		report := readFile(t, filepath.Join(*corpus, file))
		want := labels[file]
		hard, open, out := deadOf(report, want)
		dead, suppressed, living = dead+hard, suppressed+min(out, hard), living+max(0, out-hard-open)
		for i, l := range want {
			total++
			wrong := misread(report, l, i, len(want))
			if wrong == "" {
				right++
				continue
			}
			confusion[wrong]++
			if *show {
				t.Logf("%s: %s\n  want %+v\n  got  %s", file, wrong, l, briefly(report, i))
			}
		}
	}
	imagined := readNotBounces(t)
	for _, what := range sortedKeys(confusion) {
		t.Logf("%4d  %s", confusion[what], what)
	}
	t.Logf("%d of %d recipients read right: %.1f %%; %d taken for a bounce that are none", right, total,
		100*float64(right)/float64(total), imagined)
	t.Logf("%d of %d dead addresses suppressed, and %d living ones", suppressed, dead, living)
	if total == 0 || float64(right) < 0.95*float64(total) || imagined > 0 || living > 0 {
		t.Errorf("want at least 95 %%, nothing imagined, and no living address suppressed")
	}
}

// deadOf counts the recipients of a mail that are dead, those for whom either is right, and those suppressed.
func deadOf(r Report, want []label) (hard, open, suppressed int) {
	for _, l := range want {
		switch {
		case l.hard:
			hard++
		case l.reason == "filtered" || l.reason == "suspend":
			open++
		}
	}
	for _, got := range r.Recipients {
		if got.Suppress {
			suppressed++
		}
	}
	return hard, open, suppressed
}

// misread compares the result for one recipient with its label; it returns differences as text.
func misread(r Report, l label, i, recipients int) string {
	special := map[string]Kind{"feedback": Complained, "vacation": AutoReply, "delivered": Delivered}
	if kind, ok := special[l.reason]; ok && r.Kind != kind || !ok && r.Kind != Bounced && r.Kind != Delayed {
		return fmt.Sprintf("kind: %s read as %s", l.reason, r.Kind)
	}
	if l.reason == "feedback" && l.feedback != "" && (r.Feedback == nil || r.Feedback.Type != l.feedback) {
		return "feedback type of " + l.feedback
	}
	if len(r.Recipients) != recipients {
		return fmt.Sprintf("recipients: %d read as %d", recipients, len(r.Recipients))
	}
	got := r.Recipients[i]
	switch {
	case !addressShape.MatchString(got.Address) || l.recipient != "" && got.Address != l.recipient:
		return "recipient"
	case special[l.reason] != "" && l.reason != "delivered":
		return ""
	case !sameStatus(l.status, got.Status) &&
		!(got.Action == ActionDelayed && strings.HasPrefix(l.status, "5.0.9")):
		return fmt.Sprintf("status: %s read as %s", l.status, got.Status)
	case l.reason == "delivered":
		return ""
	case !slices.Contains(meanings(l), got.Verdict):
		return fmt.Sprintf("verdict: %s read as %s", l.reason, got.Verdict)
	case l.hard && !got.Suppress:
		return fmt.Sprintf("suppress: %s is not", l.reason)
	case !l.hard && got.Suppress && l.reason != "filtered" && l.reason != "suspend":
		return fmt.Sprintf("suppress: %s is", l.reason)
	}
	return ""
}

var addressShape = regexp.MustCompile(`^[^@\s<>]+@[^@\s<>:]+$`)

// sameStatus compares statuses. 5.0.9xx and 4.0.9xx are inventions of the corpus for mails that give none:
// there the class counts, unless the mail says that its server still tries.
func sameStatus(want, got string) bool {
	if strings.HasPrefix(want[1:], ".0.9") {
		return got != "" && want[0] == got[0]
	}
	return want == got
}

// meanings are the verdicts that a reason of the corpus allows. "filtered" is whatever a recipient refused
// for itself at the end, be it for its mailbox or for the mail.
func meanings(l label) []smtpsend.Verdict {
	refused := []smtpsend.Verdict{smtpsend.Policy, smtpsend.Block}
	if strings.HasPrefix(l.status, "4.") {
		passing := []smtpsend.Verdict{smtpsend.Soft, smtpsend.Throttle}
		if l.reason == "blocked" || l.reason == "requireptr" { // a server may continue to try after a block
			passing = append(passing, smtpsend.Block)
		}
		return passing
	}
	if l.hard {
		return []smtpsend.Verdict{smtpsend.Hard}
	}
	switch l.reason {
	case "mailboxfull":
		return []smtpsend.Verdict{smtpsend.Hard, smtpsend.Soft}
	case "filtered", "suspend", "onhold":
		return []smtpsend.Verdict{smtpsend.Hard, smtpsend.Policy, smtpsend.Block}
	case "expired", "networkerror", "toomanyconn":
		return []smtpsend.Verdict{smtpsend.Soft, smtpsend.Throttle}
	case "systemerror", "mailererror":
		return []smtpsend.Verdict{smtpsend.Soft, smtpsend.Throttle, smtpsend.Policy}
	case "securityerror", "rejected":
		return append(refused, smtpsend.Auth)
	case "blocked", "badreputation", "exceedlimit", "speeding":
		return append(refused, smtpsend.Throttle)
	}
	return refused
}

func readLabels(t *testing.T) map[string][]label {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(*corpus, "labels.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]label{}
	for _, line := range strings.Split(strings.TrimRight(string(b), "\n"), "\n")[1:] {
		f := append(strings.Split(line, "\t"), "")
		if len(f) < 8 {
			t.Fatalf("%d columns in %q", len(f)-1, line)
		}
		out[f[0]] = append(out[f[0]], label{file: f[0], status: f[2], reason: f[4], hard: f[5] == "true",
			feedback: f[6], recipient: f[7]})
	}
	return out
}

// readNotBounces counts emails that were wrongly taken for bounces.
func readNotBounces(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(*corpus, "not-bounces", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no mails that are no bounces: %v", err)
	}
	imagined := 0
	for _, file := range files {
		if r := readFile(t, file); r.Kind == Bounced || r.Kind == Delayed || r.Kind == Delivered ||
			r.Kind == Complained {
			imagined++
			t.Logf("%s is no bounce, read as %s", filepath.Base(file), briefly(r, 0))
		}
	}
	return imagined
}

func readFile(t *testing.T, file string) Report {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Read(f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func inHalf(file string) bool {
	sum := sha256.Sum256([]byte(file))
	return strings.HasPrefix(fmt.Sprintf("%c%d", 'a'+sum[0]%2, 1+sum[1]%2), *half)
}

func briefly(r Report, i int) string {
	if i < len(r.Recipients) {
		return fmt.Sprintf("%s %s %d recipients: %+v", r.Kind, r.Form, len(r.Recipients), r.Recipients[i])
	}
	return fmt.Sprintf("%s %s %d recipients", r.Kind, r.Form, len(r.Recipients))
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
