package ui

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/ui/chart"
)

func functions(static *files) template.FuncMap {
	return template.FuncMap{
		"file": static.url,
		"utc":  utc,
		"when": func(now, t time.Time) template.HTML { return timeTag(now, t, "") },
		"due":  func(now, t time.Time) template.HTML { return timeTag(now, t, "due") },
		"took": took,
		"word": word,
		"queued": func(q queueRow, state string, n int) map[string]any {
			return map[string]any{"N": n, "URL": q.Of(api.State(state))}
		},
		"themes":  func() []string { return themes },
		"reason":  func(name string) string { return suppressionWords[name] },
		"seconds": func(s float64) string { return span(time.Duration(s * float64(time.Second))) },
		"count":   chart.Count,
		"size":    size,
		"clip":    clip, "plural": plural,
		"first": firstCurl,
		"apiFields": func(name string, fields []apiField) any {
			return struct {
				Name   string
				Fields []apiField
			}{name, fields}
		},
		"minus":    func(a, b int) int { return a - b },
		"every":    every,
		"pretty":   pretty,
		"code":     replyCode,
		"relay":    relayOf,
		"percent":  func(share float64) float64 { return 100 * share },
		"int":      func(n int64) int { return int(n) },
		"facts":    facts,
		"valid":    valid,
		"recorded": auditSentence,
		"happened": happened, "details": detailsOf,
		"runReason": runReason, "digestAt": digestPath,
		"digestNav": func(at, account string) map[string]string {
			return map[string]string{"At": at, "Account": account}
		},
		"digestRows": func(runs []api.DigestRun, now time.Time) map[string]any {
			return map[string]any{"Runs": runs, "Now": now}
		},
		"rateState": func(state string) struct{ Class, Text string } { return rateStates[state] },
		"whyPath":   whyPath, "subscriberPath": subscriberPath,
		"someOf":   someOf,
		"lastWord": lastWord,
		"qr":       qrCode,
		"roles":    func() []api.Role { return []api.Role{api.RoleViewer, api.RoleOperator, api.RoleAdmin} },
		"sessions": func(all []api.SessionInfo, now time.Time, back string) map[string]any {
			return map[string]any{"Sessions": all, "Now": now, "Back": back}
		},
		"purpose": func(of string) string {
			return map[string]string{"spf": "SPF: who may send", "dkim": "DKIM: the key of signatures",
				"dmarc": "DMARC: what receivers do with forgeries", "mx": "MX: where answers go",
				"returnPath": "MX of return paths: where bounces come back",
				"sender":     "Proof that the domain is yours"}[of]
		},
		"field": func(t time.Time) string { return t.UTC().Format(shortDay) },
	}
}

// timeTag returns a time as HTML: its distance from now, and the time itself, in UTC. The script puts the
// reader's zone in place of UTC. past replaces the distance of a time before now; empty: nothing does.
func timeTag(now, t time.Time, past string) template.HTML {
	distance, mark := relative(now, t), ""
	if past != "" {
		mark = ` data-past="` + past + `"`
		if !t.After(now) {
			distance = past
		}
	}
	//nolint:gosec // made of times and of constants of the templates
	return template.HTML(`<time datetime="` + t.UTC().Format("2006-01-02T15:04:05.000Z") + `"` + mark +
		`><span>` + distance + `</span> <small>` + utc(t) + `</small></time>`)
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// relative returns the distance of a time from now, in one unit. The script does the same.
func relative(now, t time.Time) string {
	d := t.Sub(now)
	if d.Abs() < 2*time.Second {
		return "now"
	}
	if d > 0 {
		return "in " + span(d)
	}
	return span(-d) + " ago"
}

func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// took returns the duration from start to end, or "" without end.
func took(start time.Time, end *time.Time) string {
	if end == nil {
		return ""
	}
	return span(end.Sub(start))
}

// size returns a number of bytes as text.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}

// clip shortens a text to a number of bytes, at a whole character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// word returns a state as pages show it. A dead letter has failed; the page says where it matters that it is
// kept.
func word(state any) string {
	switch text := fmt.Sprint(state); text {
	case string(api.StatusDead):
		return string(api.StatusFailed)
	case "unset":
		return "not used yet"
	case "open":
		return "paused"
	default:
		return text
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return chart.Count(n) + " " + many
}

// every returns a list of events or accounts as text. A star or an empty list means all.
func every(list []string) string {
	if len(list) == 0 || slices.Contains(list, "*") {
		return "all"
	}
	return strings.Join(list, ", ")
}

// pretty returns indented JSON. Invalid JSON is returned unchanged.
func pretty(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// replyCode returns the reply codes of an attempt, or "" if its line begins with them.
func replyCode(a api.Attempt) string {
	if a.Code == 0 || strings.HasPrefix(a.Line, strconv.Itoa(a.Code)) {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.Code, a.Enhanced))
}
