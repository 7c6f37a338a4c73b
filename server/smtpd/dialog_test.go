package smtpd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/smtpd"
)

// mailText is a message as a client sends it, before the dot.
const mailText = "From: shop@example.com\r\nSubject: Hello\r\n\r\nHi there\r\n"

// TestDialogs plays conversations: lines that begin with "> " are sent, the others are patterns of replies.
// Each begins after the greeting.
func TestDialogs(t *testing.T) {
	login := "> EHLO x\n(?s)250-.*\n> AUTH PLAIN " + plain("acme", token) + "\n235 .*\n"
	rows := []struct{ name, dialog string }{
		{"what is offered", `> EHLO x
(?s)250-mail.example.com\n250-PIPELINING\n250-8BITMIME\n250-SMTPUTF8\n250-DSN\n250-ENHANCEDSTATUSCODES\n250-CHUNKING\n250-SIZE 26214400\n250-LIMITS RCPTMAX=1000\n250 AUTH PLAIN LOGIN`},
		{"a plain hello offers nothing", "> HELO x\n250 mail.example.com"},
		{"hello without a name", "> EHLO\n501 5.5.4 .*\n> HELO \n501 5.5.4 .*"},
		{"mail without a hello", "> MAIL FROM:<a@b.example>\n503 5.5.1 .*"},
		{"mail without a login", "> EHLO x\n(?s).*\n> MAIL FROM:<a@b.example>\n530 5.7.0 Authentication required"},
		{"login without a hello", "> AUTH PLAIN x\n503 5.5.1 .*"},
		{"login twice", login + "> AUTH PLAIN x\n503 5.5.1 .*"},
		{"unknown mechanism", "> EHLO x\n(?s).*\n> AUTH CRAM-MD5\n504 5.5.4 .*"},
		{"login cancelled", "> EHLO x\n(?s).*\n> AUTH PLAIN\n334 \n> *\n501 5.7.0 .*"},
		{"login with garbage", "> EHLO x\n(?s).*\n> AUTH PLAIN !!!\n501 5.5.2 .*\n> AUTH PLAIN " +
			b64("no NUL in it") + "\n501 5.5.2 .*"},
		{"login as somebody else", "> EHLO x\n(?s).*\n> AUTH PLAIN " + b64("boss\x00acme\x00"+token) +
			"\n501 5.5.2 .*"},
		{"plain in two steps", "> EHLO x\n(?s).*\n> AUTH PLAIN\n334 \n> " + plain("acme", token) + "\n235 .*"},
		{"login mechanism", "> EHLO x\n(?s).*\n> AUTH LOGIN\n334 " + b64("Username:") + "\n> " + b64("acme") +
			"\n334 " + b64("Password:") + "\n> " + b64(token) + "\n235 .*"},
		{"login mechanism with user", "> EHLO x\n(?s).*\n> auth login " + b64("acme") + "\n334 " +
			b64("Password:") + "\n> " + b64(token) + "\n235 .*"},
		{"wrong tokens end it", "> EHLO x\n(?s).*\n> AUTH PLAIN " + plain("acme", "x") +
			"\n535 5.7.8 Bad token\n> AUTH PLAIN " + plain("acme", "y") +
			"\n535 5.7.8 Bad token\n> AUTH PLAIN " + plain("acme", "z") +
			"\n535 5.7.8 Bad token\n421 4.7.0 Too many errors"},
		{"unknown account", "> EHLO x\n(?s).*\n> AUTH PLAIN " + plain("nobody", token) +
			"\n535 5.7.8 Account record was not found .*"},
		{"unknown account, wrong token", "> EHLO x\n(?s).*\n> AUTH PLAIN " + plain("nobody", "x") +
			"\n535 5.7.8 Bad token"},
		{"STARTTLS without a certificate", "> EHLO x\n(?s).*\n> STARTTLS\n502 5.5.1 .*"},
		{"senders", login + "> MAIL FROM:a@b.example,c@b.example\n501 5.5.4 .*\n> MAIL FROM:<a@>\n553 5.1.7 The sender is not a valid email address.*\n" +
			"> MAIL FROM:<a b@c.example>\n553 5.1.7 .*\n> MAIL FROM:<a@b.example>SIZE=1\n501 5.5.4 .*\n> MAIL TO:<a@b.example>\n501 .*\n" +
			"> MAIL FROM:<jörg@example.com>\n553 5.6.7 .*\n> MAIL FROM:<jörg@example.com> SMTPUTF8\n250 .*"},
		{"no sender", login + "> MAIL FROM:<>\n250 2.0.0 Ok"},
		{"blank after the colon", login + "> mail from: <a@b.example>\n250 .*\n> rcpt to: <c@d.example>\n250 .*"},
		{"addresses as devices write them (RFC 5321 section 4.1.1.3)", login +
			"> MAIL FROM:app@example.com SIZE=100\n250 .*\n> RCPT TO:amy@example.net NOTIFY=NEVER\n250 .*\n" +
			"> RCPT TO: amy@example.net NOTIFY=NEVER\n250 .*\n> RCPT TO:<@a,@b:amy@example.net> NOTIFY=NEVER\n250 .*\n" +
			"> RCPT TO:<@a.example:\"a..b\"@example.net> NOTIFY=NEVER\n250 .*\n> RCPT TO:<\"@a:b\"@example.net>\n553 5.1.3 .*\n" +
			"> RCPT TO:amy\n553 5.1.3 .*\n> RCPT TO:<@a,b:amy@example.net>\n553 5.1.3 .*\n> RCPT TO:<@a:>\n553 5.1.3 .*\n" +
			"> RCPT TO:\n501 .*\n> RCPT TO:a@b.example <c@d.example>\n501 .*\n> RCPT TO:<a@b.example> <c@d.example>\n501 .*\n" +
			"> RCPT TO:a@b.example;c@d.example\n501 .*"},
		{"second sender", login +
			"> MAIL FROM:<a@b.example>\n250 .*\n> MAIL FROM:<a@b.example>\n503 5.5.1 .*\n> RSET\n250 .*\n> MAIL FROM:<a@b.example>\n250 .*"},
		{"sizes", login + "> MAIL FROM:<a@b.example> SIZE=26214401\n552 5.3.4 .*\n> MAIL FROM:<a@b.example> SIZE=x\n501 5.5.4 .*\n> MAIL FROM:<a@b.example> SIZE=26214400\n250 .*"},
		{"parameters of MAIL", login +
			"> MAIL FROM:<a@b.example> BODY=BINARYMIME\n501 .*\n> MAIL FROM:<a@b.example> X=1\n555 5.5.4 Parameter not supported: X\n" +
			"> MAIL FROM:<a@b.example> RET=SOME\n501 .*\n> MAIL FROM:<a@b.example> ENVID=+0A\n501 .*\n" +
			"> MAIL FROM:<a@b.example> BODY=8BITMIME AUTH=<> RET=HDRS ENVID=x+2By SMTPUTF8\n250 .*"},
		{"recipients", login + "> RCPT TO:<a@b.example>\n503 .*\n> MAIL FROM:<a@b.example>\n250 .*\n> RCPT TO:<postmaster>\n553 5.1.3 The recipient is not a valid email address: it has no @\n" +
			"> RCPT TO:a@b.example c@b.example\n501 .*\n> RCPT TO:<a@b.example> NOTIFY=NEVER,DELAY\n501 .*\n> RCPT TO:<a@b.example> ORCPT=x\n501 .*\n> RCPT TO:<a@b.example> ORCPT=utf-8;a\\x{D800}@b.example\n501 .*\n> RCPT TO:<a@b.example> ORCPT=x400;a@b.example\n501 .*\n> RCPT TO:<\"a>b\"@c.example>\n553 .*\n" +
			"> RCPT TO:<jörg@example.com>\n553 5.6.7 .*\n> DATA\n554 5.5.1 No valid recipients"},
		{"content out of turn", login +
			"> DATA\n503 .*\n> MAIL FROM:<a@b.example>\n250 .*\n> DATA\n503 .*\n> RCPT TO:<a@b.example>\n250 .*\n> DATA now\n501 .*"},
		{"little things", "> NOOP\n250 .*\n> VRFY ann\n252 .*\n> HELP\n214 .*\n> EXPN list\n500 5.5.1 .*\n> \n500 .*\n> QUIT\n221 2.0.0 Bye"},
		{"a NUL", "> NO\x00OP\n500 5.5.2 .*"},
		{"errors end it", strings.Repeat("> WHAT\n500 .*\n", 11) + "421 4.7.0 Too many errors"},
		{"a browser", "> POST / HTTP/1.1\n421 4.7.0 .*"},
		{"a line too long", "> NOOP " + strings.Repeat("x", 5000) + "\n500 5.5.2 Line too long"},
	}
	w := setup(t, settings{})
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := dial(t, w.inlet.Addr())
			c.expect("220 .*")
			for line := range strings.SplitSeq(strings.TrimSuffix(row.dialog, "\n"), "\n") {
				if said, ours := strings.CutPrefix(line, "> "); ours {
					c.send(said + "\r\n")
				} else {
					c.expect(line)
				}
			}
		})
	}
	if got := w.outbox.all(); len(got) != 0 {
		t.Errorf("the outbox got %d messages from conversations without one", len(got))
	}
}

// TestMessageReachesTheOutbox follows a whole message.
func TestMessageReachesTheOutbox(t *testing.T) {
	w := setup(t, settings{})
	c := w.loggedIn()
	c.say("MAIL FROM:<Shop@EXAMPLE.com> SIZE=100 BODY=8BITMIME RET=FULL ENVID=order+2B1", "250 2.0.0 Ok")
	c.say("RCPT TO:<ann@example.net> NOTIFY=FAILURE,DELAY", "250 2.0.0 Ok")
	c.say("RCPT TO:<bob@Bücher.example> NOTIFY=DELAY,FAILURE", "553 5.6.7 .*")
	c.say("RCPT TO:<hidden@example.net> NOTIFY=DELAY,FAILURE ORCPT=rfc822;hidden@Example.net", "250 2.0.0 Ok")
	c.say("DATA", "354 .*")
	c.send("From: shop@example.com\r\nX-EE-Delivery-Attempts: 3\r\n\r\n..dot\r\n...\r\nend\r\n")
	c.say(".", "250 2.0.0 Ok: queued as Q1")
	c.say("QUIT", "221 .*")
	want := []api.SubmitRequest{{
		Account: "acme", Raw: []byte(
			"From: shop@example.com\r\nX-EE-Delivery-Attempts: 3\r\n\r\n.dot\r\n..\r\nend\r\n"),
		Envelope: &api.Envelope{From: "Shop@example.com", To: []string{"ann@example.net", "hidden@example.net"}},
		DSN:      &api.DSN{ID: "order+1", Return: "full", Notify: []string{"delay", "failure"}},
	}}
	if diff := cmp.Diff(want, w.outbox.all()); diff != "" {
		t.Error(diff)
	}
}

func TestTheEnvelopeHasNoSourceRoute(t *testing.T) {
	w := setup(t, settings{})
	c := w.loggedIn()
	c.say("MAIL FROM:<@relay.example:app@example.com>", "250 .*")
	c.say("RCPT TO:<@a.example,@b.example:amy@example.net>", "250 .*")
	c.say("RCPT TO:bob@example.net", "250 .*")
	c.say("DATA", "354 .*")
	c.send("From: app@example.com\r\n\r\nx\r\n")
	c.say(".", "250 .*")
	want := &api.Envelope{From: "app@example.com", To: []string{"amy@example.net", "bob@example.net"}}
	if diff := cmp.Diff(want, w.outbox.all()[0].Envelope); diff != "" {
		t.Error(diff)
	}
}

// TestReportsAreFollowedToTheLetter: recipients who want other reports go into a separate transaction.
func TestReportsAreFollowedToTheLetter(t *testing.T) {
	rows := []struct {
		name       string
		recipients []string // and the reply to each
		want       *api.DSN
	}{
		{"nothing asked", []string{"<a@x.example>", "250 .*"}, nil},
		{"never", []string{"<a@x.example> NOTIFY=never", "250 .*"}, &api.DSN{Notify: []string{"never"}}},
		{"another wish", []string{"<a@x.example> NOTIFY=NEVER", "250 .*", "<b@x.example> NOTIFY=SUCCESS",
			"452 4.5.3 .*", "<c@x.example>", "452 4.5.3 .*"}, &api.DSN{Notify: []string{"never"}}},
		{"original recipient", []string{"<a@x.example> ORCPT=rfc822;old+40x.example", "250 .*", "<b@x.example>",
			"452 4.5.3 .*"}, &api.DSN{Recipient: "old@x.example"}},
		{"original recipient in UTF-8", []string{`<a@x.example> ORCPT=utf-8;b\x{FC}\x{2B}c@b\x{FC}cher.example`,
			"250 .*"}, &api.DSN{Recipient: "bü+c@xn--bcher-kva.example"}},
		{"itself in another spelling", []string{`<a@x.example> ORCPT=UTF-8;\x{61}@X.example`, "250 .*",
			"<b@x.example>", "250 .*"}, nil},
		{"later original recipient", []string{"<a@x.example>", "250 .*", "<b@x.example> ORCPT=rfc822;old@x.example",
			"452 4.5.3 .*"}, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := setup(t, settings{})
			c := w.loggedIn()
			c.say("MAIL FROM:<>", "250 .*")
			for i := 0; i < len(row.recipients); i += 2 {
				c.say("RCPT TO:"+row.recipients[i], row.recipients[i+1])
			}
			c.say("DATA", "354 .*")
			c.say(mailText+".", "250 .*")
			if diff := cmp.Diff(row.want, w.outbox.all()[0].DSN); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPipelinedBurst sends many messages in one go and finds a reply to each command, in order.
func TestPipelinedBurst(t *testing.T) {
	const messages = 50
	w := setup(t, settings{})
	c := w.loggedIn()
	burst := strings.Repeat("MAIL FROM:<shop@example.com>\r\nRCPT TO:<ann@example.net>\r\nRCPT TO:<wrong>\r\nDATA\r\n"+mailText+".\r\n", messages)
	sent := make(chan struct{})
	go func() { defer close(sent); c.send(burst + "QUIT\r\n") }()
	for range messages {
		c.expect("250 2.0.0 Ok")
		c.expect("250 2.0.0 Ok")
		c.expect("553 5.1.3 .*")
		c.expect("354 .*")
		c.expect("250 2.0.0 Ok: queued as Q[0-9]+")
	}
	c.expect("221 .*")
	<-sent
	if got := len(w.outbox.all()); got != messages {
		t.Errorf("%d messages came in, want %d", got, messages)
	}
}

// TestChunks hands messages over by BDAT (RFC 3030).
func TestChunks(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{MaxMessage: 1 << 16}})
	c := w.loggedIn()
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<a@x.example>", "250 .*")
	c.send("BDAT 10\r\n0123456789")
	c.expect("250 2.0.0 Ok")
	c.say("RCPT TO:<b@x.example>", "503 .*")
	c.say("DATA", "503 .*")
	c.send("BDAT 8 LAST\r\n\r\n.\r\n\r\n.")
	c.expect("250 2.0.0 Ok: queued as Q1")

	c.send("BDAT 6\r\nQUIT\r\n")
	c.expect("503 .*") // and the chunk wasn't a command
	c.say("MAIL FROM:<>", "250 .*")
	c.send("RCPT TO:<wrong>\r\nBDAT 6 LAST\r\nQUIT\r\n")
	c.expect("553 .*")
	c.expect("554 5.5.1 No valid recipients")
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<a@x.example>", "250 .*")
	c.send("BDAT 65537\r\n" + strings.Repeat("x", 65537))
	c.expect("552 5.3.4 .*")
	c.send("BDAT 6 LAST\r\nQUIT\r\n")
	c.expect("503 .*")
	c.say("BDAT x", "501 .*")
	c.closed()
	want := "0123456789\r\n.\r\n\r\n."
	if got := w.outbox.all(); len(got) != 1 || string(got[0].Raw) != want {
		t.Errorf("the outbox got %+v, want %q once", got, want)
	}
}
