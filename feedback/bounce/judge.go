package bounce

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// conclude judges each recipient, and sets the kind of the report: the worst news.
func (m *mail) conclude(r Report, facts []fact) (Report, bool) {
	rank := map[Action]int{ActionFailed: 3, ActionDelayed: 2, ActionDelivered: 1, ActionRelayed: 1,
		ActionExpanded: 1}
	kinds := map[int]Kind{0: Bounced, 1: Delivered, 2: Delayed, 3: Bounced}
	worst := 0
	for _, f := range facts {
		rcpt, _ := m.recipient(f)
		worst = max(worst, rank[rcpt.Action])
		r.Recipients = append(r.Recipients, rcpt)
	}
	r.Kind = kinds[worst]
	return r, true
}

// Judge returns the meaning of a refusal that somebody else reports: a mail server in a bounce, a provider in
// a webhook. It is smtpsend.Classify for the reply that e.Text quotes. If it quotes none, the wording of
// servers that never reached the other side counts (wording.tsv). e.Enhanced is the report's status, which
// may differ from the reply's. ok is false if e has neither codes nor a known wording.
func Judge(e smtpsend.Evidence) (j smtpsend.Judgement, ok bool) {
	f := fact{action: ActionFailed, status: e.Enhanced, diagnostic: typedText(e.Text), code: e.Code,
		phase: e.Phase}
	out, j := newJudge(e.Now).recipient(f)
	return j, out.Code >= 400 || f.status != "" || hasReason(f.diagnostic)
}

// judge asks smtpsend.Classify once an email for the same evidence: a hundred recipients are often refused in
// the same words.
type judge struct {
	now   time.Time
	known map[smtpsend.Evidence]smtpsend.Judgement
}

func newJudge(now time.Time) judge {
	return judge{now: now, known: map[smtpsend.Evidence]smtpsend.Judgement{}}
}

// recipient returns the meaning of one recipient's facts.
func (c judge) recipient(f fact) (Recipient, smtpsend.Judgement) {
	f.address = cmp.Or(f.address, f.original)
	f.diagnostic = strings.ToValidUTF8(f.diagnostic[:min(len(f.diagnostic), 2*maxDiagnostic)], "")
	out := Recipient{
		Address: f.address, Original: f.original, Action: f.action, RemoteMTA: f.remote,
		Diagnostic: message.OneLine(f.diagnostic, maxDiagnostic),
	}
	q := f.reply()
	out.Action = cmp.Or(out.Action, actionOf(f.status, q))
	out.Code = q.code
	said := f.diagnostic
	if q.code != 0 {
		said = q.words
	}
	w, worded := findWording(firstParagraph(said))
	if !worded && firstParagraph(said) != said {
		w, worded = findWording(said)
	}
	out.Status = statusOf(f, q, out.Action, w)
	if out.Action != ActionFailed && out.Action != ActionDelayed {
		return out, smtpsend.Judgement{}
	}
	j := c.classify(f, q, out, w, worded)
	out.Verdict, out.Scope, out.Suppress = j.Verdict, j.Scope, j.Suppress && out.Action == ActionFailed &&
		strings.Contains(out.Address, "@")
	return out, j
}

// reply returns the SMTP reply that the diagnostic quotes. A provider may give its code in a separate field.
func (f fact) reply() quoted {
	q, _ := findReply(firstParagraph(f.diagnostic))
	if q == (quoted{}) {
		q, _ = findReply(f.diagnostic)
	}
	inner := innerReply.FindStringSubmatch(f.diagnostic)
	if inner != nil && strings.HasSuffix(f.status+q.enhanced, ".4.7") {
		q, _ = findReply(inner[1]) // time ran out, and this was the last reply before
	}
	if q.code == 0 && f.code != 0 {
		q.code, q.words = f.code, message.OneLine(f.diagnostic, maxDiagnostic)
		if !strings.HasPrefix(q.enhanced, string(rune('0'+f.code/100))) {
			q.enhanced = ""
		}
	}
	return q
}

// innerReply matches a reply within the reply of a server that gave up.
var innerReply = regexp.MustCompile(`<([45]\d\d [45]\.\d{1,3}\.\d{1,3} [^<>]*)>`)

// firstParagraph returns a text up to its first empty line.
func firstParagraph(text string) string {
	text = strings.TrimLeft(text, "\n ")
	if end := strings.Index(text, "\n\n"); end >= 0 {
		return text[:end]
	}
	return text
}

// actionOf returns the action of mail that names none.
func actionOf(status string, q quoted) Action {
	if strings.HasPrefix(status, "2.") || status == "" && q.code/100 == 2 {
		return ActionDelivered
	}
	return ActionFailed
}

// statusOf returns the most precise status of the mail: the quoted reply's, else its own, else the wording's.
// Servers that report a refusal by another often put their own status before it.
func statusOf(f fact, q quoted, a Action, w wording) string {
	switch {
	case q.code != 0 && q.enhanced != "" && !vague(q.enhanced):
		return q.enhanced
	case f.status != "" && !vague(f.status):
		return f.status
	case q.enhanced != "" && (f.status == "" || !vague(q.enhanced)):
		return q.enhanced
	case q.code >= 400 && !strings.HasPrefix(f.status, string(rune('0'+q.code/100))) &&
		!strings.HasPrefix(f.status, "4."): // 4.0.0 for a 5xx: the server tried again until time ran out
		return string(rune('0'+q.code/100)) + ".0.0" // the server got the reply, but invented the status
	case f.status != "":
		return f.status
	}
	class := map[Action]string{ActionFailed: "5.", ActionDelayed: "4."}[a]
	switch {
	case class == "":
		return "2.0.0"
	case len(w.subject) == len("4.4.7"):
		return w.subject // the server says that every attempt failed temporarily
	case w.subject != "":
		return class + w.subject
	}
	return class + "0.0"
}

// aboutNothing reports whether a status leaves its subject open. 5.5.0 is written for replies of all kinds.
func aboutNothing(status string) bool {
	return status == "" || slices.Contains([]string{"0.0", "1.0", "2.0", "5.0"}, status[2:])
}

// vague reports whether a status is only a class.
func vague(status string) bool { return strings.HasSuffix(status, ".0.0") }

// classify calls smtpsend for the reply. If none is quoted, it uses the reply that the wording stands for.
func (c judge) classify(f fact, q quoted, out Recipient, w wording, worded bool) smtpsend.Judgement {
	passing := strings.HasPrefix(out.Status, "4.") || out.Action == ActionDelayed
	e := c.evidence(f, q, out.Status, passing)
	meant := smtpsend.Evidence{Phase: smtpsend.PhaseRcpt, Code: w.code, Enhanced: w.status, Recipients: 1}
	worded = worded && !(q.code != 0 && strings.HasPrefix(w.subject, "1.") && aboutSender.MatchString(q.words))
	usable := worded && w.code != 0 && !(passing && w.code >= 500)
	given := q.enhanced
	given = cmp.Or(given, f.status)
	if usable && q.code == 0 && (!aboutMailbox(given) || w.local) {
		return c.ask(meant)
	}
	j := c.ask(e)
	switch refused := j.Verdict == smtpsend.Policy; {
	case usable && (refused && j.Rule == "" || w.plain && (refused || j.Verdict == smtpsend.Auth)):
		j = c.ask(meant)
	case worded && w.code == 0 && j.Rule == "" && refused && aboutNothing(given) &&
		e.Phase != smtpsend.PhaseMail:
		e.Enhanced = string(rune('0'+e.Code/100)) + "." + w.subject
		if again := c.ask(e); again.Verdict == smtpsend.Hard {
			j = again
		}
	case aboutNetwork(out.Status) && !worded && j.Rule == "" && refused, ranOut(out.Status) &&
		(refused || j.Verdict == smtpsend.Block):
		j = c.ask(smtpsend.Evidence{Phase: smtpsend.PhaseRcpt, Code: 451, Enhanced: "4.4.0", Recipients: 1})
	}
	if j.Rule == "" && !worded && q.before != "" {
		local := e
		local.Text = q.before
		if again := c.ask(local); again.Rule != "" {
			j = again
		}
	}
	return ofOthers(e, j)
}

// aboutSender matches a reply that says that the client does not exist or has no name.
var aboutSender = regexp.MustCompile(
	`(?i)\byour (ip|host|server|domain|address|client|hostname|account)\b|\breverse\b|\bptr\b`)

// evidence returns the evidence for smtpsend.
func (c judge) evidence(f fact, q quoted, status string, passing bool) smtpsend.Evidence {
	e := smtpsend.Evidence{Phase: phaseOf(f.diagnostic), Code: q.code, Enhanced: q.enhanced, Text: q.words,
		Recipients: 1, Now: c.now}
	e.Text = cmp.Or(e.Text, message.OneLine(f.diagnostic, maxDiagnostic))
	if e.Code < 400 {
		e.Code = 550
		if passing {
			e.Code = 450
		}
	}
	if (e.Enhanced == "" || vague(e.Enhanced)) && status[0] == byte('0'+e.Code/100) {
		e.Enhanced = status
	}
	e.Phase = cmp.Or(e.Phase, f.phase)
	if e.Phase == "" && aboutRecipient(e.Enhanced) {
		e.Phase = smtpsend.PhaseRcpt
	}
	return e
}

// ofOthers corrects a judgement where a reply to another server has another meaning than one to Postroom.
func ofOthers(e smtpsend.Evidence, j smtpsend.Judgement) smtpsend.Judgement {
	atConnect := (e.Phase == smtpsend.PhaseGreeting || e.Phase == smtpsend.PhaseEHLO) && e.Code >= 500
	switch {
	case atConnect && j.Verdict == smtpsend.Soft && j.Scope == smtpsend.ScopeDestination:
		// The server was refused permanently before it named a recipient. For Postroom another host might still
		// accept; the reporting server has tried them.
		return smtpsend.Judgement{Verdict: smtpsend.Block, Scope: j.Scope, Rule: j.Rule}
	case e.Code == 503 && j.Verdict == smtpsend.Soft:
		// The server gave up on a conversation that it did not understand: its own fault.
		return smtpsend.Judgement{Verdict: smtpsend.Policy, Scope: smtpsend.ScopeMessage}
	case j.Verdict == smtpsend.Auth:
		// The login between two other servers is not ours: our relay took the message.
		j.Verdict, j.Scope = smtpsend.Policy, smtpsend.ScopeMessage
	}
	return j
}

// ask calls smtpsend.Classify, unless it knows the answer.
func (c judge) ask(e smtpsend.Evidence) smtpsend.Judgement {
	j, known := c.known[e]
	if !known {
		j = smtpsend.Classify(e)
		c.known[e] = j
	}
	return j
}

// aboutMailbox reports whether a status is about the address, the mailbox or a policy (RFC 3463: subjects 1,
// 2 and 7). Then words about networks in the text have another meaning.
func aboutMailbox(status string) bool {
	return len(status) > 3 && !vague(status) && (status[2] == '1' || status[2] == '2' || status[2] == '7') &&
		status[3] == '.'
}

// aboutNetwork reports whether a status is about the way to the recipient's server (RFC 3463 section 3.5).
// Such a failure is not about the mail and is temporary, though this server gave up. 5.4.1 is not included:
// servers use it for refusals of all kinds.
func aboutNetwork(status string) bool {
	return slices.Contains([]string{"5.4.0", "5.4.2", "5.4.3", "5.4.5"}, status)
}

// ranOut reports whether a status says that time ran out, or that mail went in circles, which an operator
// will repair. The statuses of three digits are Exchange Online's.
func ranOut(status string) bool {
	return slices.Contains([]string{"5.4.6", "5.4.7", "5.4.14", "5.4.300", "5.4.316", "5.4.317"}, status)
}

// aboutRecipient reports whether a status is about the recipient's mailbox in any phase (RFC 3463 section 3.2
// and 3.3, and 5.7.13 of RFC 7505's registry: the mailbox is switched off).
func aboutRecipient(status string) bool {
	return slices.Contains([]string{"5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1", "5.7.13"},
		status)
}
