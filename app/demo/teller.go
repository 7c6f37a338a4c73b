package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/postroom/postroom/api/event"
)

// teller writes the output, in colour on a terminal.
type teller struct{ out io.Writer }

var (
	bold  = lipgloss.NewStyle().Bold(true)
	dim   = lipgloss.NewStyle().Faint(true)
	good  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Red)
	later = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

func (t teller) line(format string, args ...any) {
	_, _ = lipgloss.Fprintf(t.out, format+"\n", args...)
}

// step prints the heading of a step.
func (t teller) step(n int, title, about string) {
	t.line("\n%s  %s", bold.Render(fmt.Sprint(n)), bold.Render(title))
	t.line("   %s\n", about)
}

// command prints the curl command of a request.
func (t teller) command(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		t.line("   %s", dim.Render(line))
	}
	t.line("")
}

// answer prints the answer to a request.
func (t teller) answer(format string, args ...any) { t.line("   → "+format, args...) }

// happened prints an email or a webhook, with the time since its step began.
func (t teller) happened(h happening, since time.Duration) {
	at := dim.Render(fmt.Sprintf("%5.1f s", since.Seconds()))
	if h.mail != nil {
		t.line("   %s  inbox    %s has mail: %s", at, plain(strings.Join(h.mail.to, ", ")), plain(h.mail.subject))
		return
	}
	t.line("   %s  webhook  %s", at, h.hook.describe(time.Now()))
}

// describe returns a webhook as one line.
func (h *hook) describe(now time.Time) string {
	to, job := plain(strings.Join(h.Data.Envelope.To, ", ")), h.Data.Job
	switch h.Event {
	case event.MessageSent:
		return fmt.Sprintf("%s to %s: %s", good.Render(string(h.Event)), to, plain(h.Data.Response))
	case event.MessageDeliveryError:
		next := ""
		if job.NextAttempt != nil {
			next = fmt.Sprintf("; again in %.0f s", max(0, job.NextAttempt.Sub(now).Seconds()))
		}
		return fmt.Sprintf("%s, attempt %d of %d: %s%s", later.Render(string(h.Event)), job.AttemptsMade,
			job.Attempts, plain(h.why()), next)
	case event.MessageFailed:
		return fmt.Sprintf("%s to %s: %s", bad.Render(string(h.Event)), to, plain(h.why()))
	case event.MessageCancelled:
		return later.Render(string(h.Event)) + " to " + to
	case event.MessageQueued:
		return string(h.Event) + " to " + to
	}
	return string(h.Event)
}

// why returns the relay's reply, or the error if there was none.
func (h *hook) why() string { return cmp.Or(h.Data.SMTPResponse, h.Data.Error) }

// plain replaces control characters, which could move the cursor. After the tour, anybody's mail may be
// printed.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// curl returns the command that makes a request. It can be pasted into a shell with URL and TOKEN set.
func curl(method, path string, body any) string {
	var b strings.Builder
	b.WriteString("curl -s ")
	if method != "POST" {
		b.WriteString("-X " + method + " ")
	}
	fmt.Fprintf(&b, "\"$URL%s\" \\\n  -H \"Authorization: Bearer $TOKEN\"", path)
	if body == nil {
		return b.String()
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(body) // these are our own types, which always encode
	quoted := strings.ReplaceAll(strings.TrimSpace(text.String()), "'", `'\''`)
	fmt.Fprintf(&b, " \\\n  -H 'Content-Type: application/json' \\\n  -d '%s'", folded(quoted))
	return b.String()
}

// folded writes each field of a JSON object on a separate line.
func folded(object string) string {
	var b strings.Builder
	depth, quoted := 0, false
	for i, c := range object {
		switch {
		case c == '"' && (i == 0 || object[i-1] != '\\'):
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		b.WriteRune(c)
		if c == ',' && depth == 1 && !quoted {
			b.WriteString("\n   ")
		}
	}
	return b.String()
}
