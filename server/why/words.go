package why

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/replies"
)

// longestQuote is how many runes of a reply are quoted.
const longestQuote = 200

func finding(kind string, at *time.Time, format string, args ...any) api.WhyFinding {
	return api.WhyFinding{Kind: kind, Text: fmt.Sprintf(format, args...), Time: at, Do: []api.WhyStep{}}
}

// about names a message at the beginning of a sentence.
func about(m api.WhyMessage) string {
	if m.Subject == "" {
		return "The message of " + on(m.Created)
	}
	return fmt.Sprintf("The message “%s” of %s", clip(m.Subject, 60), on(m.Created))
}

// on writes a time into a sentence.
func on(t time.Time) string { return t.UTC().Format("2 January 2006 15:04:05 UTC") }

// onSome is on with the word before it, for a time that may not be known.
func onSome(t *time.Time) string {
	if t == nil {
		return ""
	}
	return " on " + on(*t)
}

// quoted puts somebody else's text into a sentence; "" if there is none.
func quoted(text string) string {
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	if text == "" {
		return ""
	}
	return " (“" + clip(text, longestQuote) + "”)"
}

// because is a reason that ends a sentence; "" if there is none.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + clip(reason, longestQuote) + ")"
}

// meaning says what a reply or an error means; nil if there is none.
func meaning(r replies.Reply) *api.Explanation {
	if r == (replies.Reply{}) {
		return nil
	}
	return new(replies.Of(r))
}

func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// simple matches what a shell takes as one word. A word that begins with a dash would be a flag.
var simple = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*$`)

// step is something to do: a command of Postroom, whose arguments are quoted for a shell, and the path of a
// page. An argument that begins with -- is a flag.
func (q *question) step(text, page, command string, args ...string) api.WhyStep {
	words := []string{"postroom", command}
	for _, arg := range args {
		if !simple.MatchString(arg) && !strings.HasPrefix(arg, "--") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return api.WhyStep{Text: text, Command: strings.Join(words, " "), Page: page}
}

func escaped(id string) string { return url.PathEscape(id) }

func query(text string) string { return url.QueryEscape(text) }

func messagePage(m api.WhyMessage) string { return "/messages/" + m.QueueID }

// laneQueue returns a lane's queue name in commands.
func laneQueue(lane api.Lane) string {
	if lane == api.Bulk {
		return "bulk"
	}
	return "submit"
}
