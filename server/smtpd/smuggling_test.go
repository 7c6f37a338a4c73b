package smtpd_test

import (
	"bufio"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forged is what an attacker wants taken for a separate message (CVE-2023-51764, 51765, 51766).
const forged = "MAIL FROM:<ceo@example.com>\r\nRCPT TO:<victim@example.net>\r\nDATA\r\nFrom: ceo@example.com\r\n\r\nforged\r\n.\r\n"

// TestSmuggling sends every sequence that some server takes for the end of a message, followed by a forged
// one.
func TestSmuggling(t *testing.T) {
	rows := []struct {
		name, sequence string
		refused        bool   // else it is content, as given in kept
		kept           string // the outbox makes CRLF of what is left of bare CR and LF
	}{
		{"LF . LF", "\n.\n", true, ""},
		{"LF . CRLF", "\n.\r\n", true, ""},
		{"CRLF . LF", "\r\n.\n", true, ""},
		{"CR . CR", "\r.\r", true, ""},
		{"CR . CRLF", "\r.\r\n", true, ""},
		{"CR . LF", "\r.\n", true, ""},
		{"CRLF . CR", "\r\n.\rx", true, ""},
		{"CRLF . CR CRLF", "\r\n.\r\r\n", true, ""},
		{"LF . CR", "\n.\rx", true, ""},
		{"CR LF . in two dots", "\n..\n", true, ""},
		{"CRLF NUL . CRLF", "\r\n\x00.\r\n", false, "\r\n\x00.\r\n"},
		{"CRLF .. CRLF", "\r\n..\r\n", false, "\r\n.\r\n"},
		{"CRLF . blank CRLF", "\r\n. \r\n", false, "\r\n \r\n"},
		{"bare LF without a dot", "\nx\n", false, "\nx\n"},
		{"bare CR without a dot", "\rx\r", false, "\rx\r"},
		{"CR CRLF", "x\r\r\n", false, "x\r\r\n"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := setup(t, settings{})
			c := w.loggedIn()
			c.begin()
			c.send("Subject: x\r\n\r\nbody" + row.sequence + forged)
			if row.refused {
				c.expect("550 5.6.0 Message refused: a line break other than CRLF next to a dot .*")
			} else {
				c.expect("250 2.0.0 Ok: queued as Q1")
			}
			c.say("NOOP", "250 .*") // no second message was seen: this is the only reply that is left
			var want, got []string
			if !row.refused {
				want = []string{"Subject: x\r\n\r\nbody" + row.kept + strings.TrimSuffix(forged, ".\r\n")}
			}
			for _, req := range w.outbox.all() {
				got = append(got, string(req.Raw))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSmugglingAcrossBuffers puts the sequences where one read ends and the next begins.
func TestSmugglingAcrossBuffers(t *testing.T) {
	const buffer = 16 << 10
	w := setup(t, settings{})
	for _, sequence := range []string{"\n.\n", "\n.\r\n", "\r.\r", "\r.\r\n", "\r\n.\n", "\r\n.\rx"} {
		c := w.loggedIn()
		for shift := range 8 {
			c.begin()
			c.send(strings.Repeat("x", buffer-4+shift) + sequence + forged)
			c.expect("550 5.6.0 .*")
		}
		c.begin()
		for shift := range 8 { // CRLF itself, broken in two, is one; and so is its dot
			c.send(strings.Repeat("y", buffer-4+shift) + "\r\n..\r\n")
		}
		c.say(".", "250 .*")
		c.conn.Close()
	}
	got := w.outbox.all()
	if len(got) != 6 {
		t.Fatalf("%d messages came in, want 6", len(got))
	}
	r := bufio.NewScanner(strings.NewReader(string(got[0].Raw)))
	r.Buffer(nil, 2*buffer)
	for line := 0; r.Scan(); line++ {
		if isDot := r.Text() == "."; isDot != (line%2 == 1) {
			t.Errorf("line %d is %.20q", line, r.Text())
		}
	}
}

// TestDotAfterDoubleCR: CR CR LF ends a line like any CRLF, so the dot after it ends the message; go-smtp's
// server would wait for ever.
func TestDotAfterDoubleCR(t *testing.T) {
	w := setup(t, settings{})
	c := w.loggedIn()
	c.begin()
	c.send("Subject: x\r\n\r\nbody\r\r\n.\r\n")
	c.expect("250 .*")
}

// TestCommandsEndWithCRLF: two servers that disagree about the end of a command disagree about the rest.
func TestCommandsEndWithCRLF(t *testing.T) {
	w := setup(t, settings{})
	c := w.connect()
	c.send("NOOP\nNOOP\rNOOP\r\nNOOP\r\n")
	c.expect("500 5.5.2 A command must end with CRLF.*")
	c.expect("500 5.5.2 A command must end with CRLF.*")
	c.expect("250 .*")
}

// TestNothingFollowsSTARTTLSInTheClear: commands put behind it by whoever sits between must not count once
// the connection is encrypted.
func TestNothingFollowsSTARTTLSInTheClear(t *testing.T) {
	w := setup(t, settings{tls: true})
	c := w.connect()
	c.say("EHLO x", `(?s)250-.*250-STARTTLS\n250 AUTH PLAIN LOGIN`)
	c.send("STARTTLS\r\nRSET\r\n")
	c.expect("554 5.5.1 .*")
	c.closed()
}
