package replies

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
)

// Reply is the known parts of a refusal.
type Reply struct {
	Code     int    // reply code; if 0, the code in Text, if there is one
	Enhanced string // enhanced status code; if empty, the code in Text, if there is one
	Text     string // the reply, or the error where none came
	Error    string // name of the error, such as ETIMEDOUT; empty if not known
}

// longest is how many bytes of a reply are looked at. An SMTP reply is shown up to 1,000 bytes.
const longest = 4000

var (
	codePattern = regexp.MustCompile(`(?:^|[\s;:<("'])([2-5][0-5][0-9])(?:$|[\s-])`)
	enhancedAt  = regexp.MustCompile(`(?:^|[^0-9.])([245]\.[0-9]{1,3}\.[0-9]{1,3})(?:$|[^0-9.]|\.(?:$|[^0-9]))`)
	httpPattern = regexp.MustCompile(`(?i)^http(?:/[0-9.]+)? ([1-5][0-9][0-9])\b`)
)

// Explain returns what a reply means: by its text, else its enhanced code, else its code, else the code's
// class. "HTTP 404" is the answer of a webhook endpoint. It always returns an explanation; if nothing is
// known, its reason is "unknown".
func Explain(reply string) api.Explanation {
	if m := httpPattern.FindStringSubmatch(reply); m != nil {
		status, _ := strconv.Atoi(m[1])
		return OfWebhook(status, reply)
	}
	return Of(Reply{Text: reply})
}

// All returns every explanation, in the order in which replies are compared with them.
func All() (all []api.Explanation) {
	for _, e := range table() {
		all = append(all, e.Explanation)
	}
	return all
}

// Of is Explain for a reply whose parts are known.
func Of(r Reply) api.Explanation { return find(r).Explanation }

func find(r Reply) *entry {
	r = r.complete()
	text := strings.ToLower(r.Text)
	class := ""
	if r.Code != 0 {
		class = strconv.Itoa(r.Code / 100)
	} else if r.Enhanced != "" {
		class = r.Enhanced[:1]
	}
	mail := func(fits func(e *entry) bool) *entry {
		all := table()
		if i := slices.IndexFunc(all, func(e *entry) bool { return !e.webhook && fits(e) }); i >= 0 {
			return all[i]
		}
		return nil
	}
	if class != "2" && class != "3" {
		if e := mail(func(e *entry) bool { return e.says(text, class) }); e != nil {
			return e
		}
	}
	if len(r.Enhanced) > 1 {
		ofAll := "x" + r.Enhanced[1:]
		if e := mail(func(e *entry) bool {
			return slices.Contains(e.enhanced, r.Enhanced) ||
				class != "2" && e.fits(class) && slices.Contains(e.enhanced, ofAll)
		}); e != nil {
			return e
		}
	}
	for _, code := range []string{strconv.Itoa(r.Code), class + "xx"} {
		if e := mail(func(e *entry) bool { return slices.Contains(e.codes, code) }); e != nil {
			return e
		}
	}
	if e := mail(func(e *entry) bool { return slices.Contains(e.errors, r.Error) }); e != nil {
		return e
	}
	return mail(func(e *entry) bool { return e.Reason == "unknown" })
}

// complete fills in codes that are only in the text. An enhanced code of another class than the code is
// ignored.
func (r Reply) complete() Reply {
	r.Text = strings.Join(strings.Fields(r.Text[:min(len(r.Text), longest)]), " ")
	if name, rest, found := strings.Cut(r.Text, " "); r.Error == "" && errorName.MatchString(name) {
		if r.Error = name; found {
			r.Text = rest
		}
	}
	if r.Code == 0 {
		if m := codePattern.FindStringSubmatch(r.Text); m != nil {
			r.Code, _ = strconv.Atoi(m[1])
		}
	}
	if r.Enhanced == "" {
		if m := enhancedAt.FindStringSubmatch(r.Text); m != nil {
			r.Enhanced = m[1]
		}
	}
	if r.Code != 0 && !strings.HasPrefix(r.Enhanced, strconv.Itoa(r.Code/100)+".") {
		r.Enhanced = ""
	}
	return r
}

var errorName = regexp.MustCompile(`^E[A-Z0-9]{2,}$`)

// OfWebhook says why a webhook delivery failed: by the status of the answer, or the error where there was
// none.
func OfWebhook(status int, failure string) api.Explanation {
	if status == 0 {
		return Of(Reply{Text: failure, Error: "ECONNECTION"})
	}
	for _, code := range []string{strconv.Itoa(status), strconv.Itoa(status/100) + "xx"} {
		for _, e := range table() {
			if e.webhook && slices.Contains(e.codes, code) {
				return e.Explanation
			}
		}
	}
	return Of(Reply{})
}
