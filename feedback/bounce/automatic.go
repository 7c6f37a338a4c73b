package bounce

import "strings"

// readAutomatic reads automatic replies on behalf of a person: out-of-office replies (RFC 3834, RFC 5230),
// ticket systems, and filters that ask the sender to prove to be human. Servers mark their bounces as
// automatic too, so for a bounce it returns false.
func (m *mail) readAutomatic() (Report, bool) {
	if m.fromDaemon() || m.header.get("x-failed-recipients") != "" {
		if _, _, signs := m.outcome(); signs+m.daemonSigns() >= 3 {
			return Report{}, false
		}
	}
	for _, means := range []struct {
		word string
		kind Kind
	}{{"challenge", Challenge}, {"auto", AutoReply}} {
		for _, f := range forms() {
			if f.means != means.word || !f.pattern.MatchString(m.place(f.where)) {
				continue
			}
			if f.where == "auto-submitted" && m.fromDaemon() {
				continue // RFC 3834 asks servers to mark their notices so
			}
			return Report{Kind: means.kind, Form: f.name, Recipients: named(addresses(m.header.get("from"), 1))}, true
		}
	}
	return Report{}, false
}

// place returns the text that a rule of forms.tsv is matched with.
func (m *mail) place(where string) string {
	switch where {
	case "subject":
		return m.subject()
	case "body":
		return m.notice.flat
	}
	return strings.ToLower(words(m.header.get(where)))
}

func (m *mail) fromDaemon() bool {
	_, ok := findForm("daemon", "from", m.place("from"))
	return ok
}
