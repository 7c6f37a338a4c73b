package smtpsend_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/smtpsend"
)

const (
	hello = "<- 220 mx.test ESMTP\n-> EHLO client.test\n<- 250-mx.test\n<- 250 PIPELINING\n"
	plain = "<- 220 mx.test ESMTP\n-> EHLO client.test\n<- 250 mx.test\n"
)

// TestDialogue: what an attempt keeps of its dialogue when it did not deliver to everybody.
func TestDialogue(t *testing.T) {
	t.Parallel()
	const open = "- connecting to 127.0.0.1:PORT\n- connected\nS 220 mx.test ESMTP\nC EHLO client.test\n"
	for _, row := range []struct{ name, words, dialog, want string }{
		{"delivered", "", hello + "-> MAIL *\n-> RCPT *\n-> DATA\n<- 250 ok\n<- 250 ok\n<- 354 go\n.. body\n<- 250 ok\n",
			""},
		{"refused at the greeting", "", "<- 554 5.7.1 your network is listed\n",
			"- connecting to 127.0.0.1:PORT\n- connected\nS 554 5.7.1 your network is listed\n"},
		{"refused at RCPT", "to=b@example.org,c@example.org", hello +
			"-> MAIL *\n-> RCPT *\n-> RCPT *\n-> DATA\n<- 250 ok\n<- 550-5.1.1 no\n<- 550 5.1.1 such user\n<- 250 ok\n" +
			"<- 354 go\n.. body\n<- 250 queued\n",
			open + "S 250 mx.test / PIPELINING\nC MAIL FROM:<a@example.com>\nC RCPT TO:<b@example.org>\n" +
				"C RCPT TO:<c@example.org>\nC DATA\nS 250 ok\nS 550 5.1.1 no / 5.1.1 such user\nS 250 ok\nS 354 go\nC (message, 21 bytes)\nC .\nS 250 queued\n"},
		{"refused at DATA", "", plain + "-> MAIL *\n<- 250 ok\n-> RCPT *\n<- 250 ok\n-> DATA\n<- 451 4.3.0 disk full\n",
			open + "S 250 mx.test\nC MAIL FROM:<a@example.com>\nS 250 ok\nC RCPT TO:<b@example.org>\nS 250 ok\nC DATA\n" +
				"S 451 4.3.0 disk full\n"},
		{"refused after DATA", "", hello + "-> MAIL *\n-> RCPT *\n-> DATA\n<- 250 ok\n<- 250 ok\n<- 354 go\n.. body\n" +
			"<- 554 5.7.1 spam\n",
			open + "S 250 mx.test / PIPELINING\nC MAIL FROM:<a@example.com>\nC RCPT TO:<b@example.org>\nC DATA\nS 250 ok\n" +
				"S 250 ok\nS 354 go\nC (message, 21 bytes)\nC .\nS 554 5.7.1 spam\n"},
		{"dropped in the middle", "", plain + "-> MAIL *\n<- 250 ok\n-> RCPT *\n.. close\n",
			open + "S 250 mx.test\nC MAIL FROM:<a@example.com>\nS 250 ok\nC RCPT TO:<b@example.org>\n" +
				"- the connection was closed: EOF\n"},
		{"dropped at the dot", "", hello + "-> MAIL *\n-> RCPT *\n-> DATA\n<- 250 ok\n<- 250 ok\n<- 354 go\n.. body\n.. close\n",
			open + "S 250 mx.test / PIPELINING\nC MAIL FROM:<a@example.com>\nC RCPT TO:<b@example.org>\nC DATA\nS 250 ok\n" +
				"S 250 ok\nS 354 go\nC (message, 21 bytes)\nC .\n- the connection was closed: EOF\n"},
		{"silent", "timeout=1s", plain + "-> MAIL *\n.. hang\n",
			open + "S 250 mx.test\nC MAIL FROM:<a@example.com>\n- timeout after 1.0 s: the relay did not answer in time\n"},
		{"TLS fails", "tls=required", "<- 220 mx.test ESMTP\n-> EHLO client.test\n<- 250-mx.test\n<- 250 STARTTLS\n" +
			"-> STARTTLS\n<- 220 go\n.. close\n",
			open + "S 250 mx.test / STARTTLS\nC STARTTLS\nS 220 go\n" +
				"- TLS handshake: the connection was closed\n"},
		{"over TLS", "tls=required trust", "<- 220 mx.test ESMTP\n-> EHLO client.test\n<- 250-mx.test\n<- 250 STARTTLS\n" +
			"-> STARTTLS\n<- 220 go\n.. tls\n-> EHLO *\n<- 250 mx.test\n-> MAIL *\n<- 550 5.7.1 no\n",
			open + "S 250 mx.test / STARTTLS\nC STARTTLS\nS 220 go\n- TLS 1.3, TLS_AES_128_GCM_SHA256\nC EHLO client.test\n" +
				"S 250 mx.test\nC MAIL FROM:<a@example.com>\nS 550 5.7.1 no\n"},
		{"not an SMTP server", "", "<- 220 ProFTPD of the tax office\n-> EHLO client.test\n<- 500 EHLO what\n" +
			"-> HELO client.test\n<- 500 HELO what\n",
			"- connecting to 127.0.0.1:PORT\n- connected\n" + strings.ReplaceAll(
				"S 220 VEIL\nC EHLO client.test\nS 500 VEIL\nC HELO client.test\nS 500 VEIL\n", "VEIL",
				"(not shown: nothing shows that this is an SMTP server)")},
		{"control characters", "", plain + "-> MAIL *\n<- 550 \x1b[31m<b>\x00no\xff&\u2028\u202e\n",
			open + "S 250 mx.test\nC MAIL FROM:<a@example.com>\nS 550  [31m<b> noÿ&\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			server := playDialog(t, row.dialog)
			relay, m, o := parseSend(t, server, strings.Fields(row.words))
			sender, err := smtpsend.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer sender.Close()
			result, _ := sender.Send(context.Background(), relay, m)
			got := strings.ReplaceAll(told(result.Dialogue), ":"+strconv.Itoa(server.port()), ":PORT")
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("dialogue (-want +got):\n%s", diff)
			}
		})
	}
}

// told writes a dialogue without its times.
func told(lines []smtpsend.DialogueLine) string {
	var b strings.Builder
	for _, l := range lines {
		who := map[string]string{smtpsend.FromClient: "C", smtpsend.FromServer: "S", smtpsend.FromNote: "-"}[l.From]
		fmt.Fprintf(&b, "%s %s\n", who, l.Text)
	}
	return b.String()
}

// TestDialogueHasNoSecrets: a relay that repeats what it was sent, in whatever form, does not put the
// credentials into the dialogue.
func TestDialogueHasNoSecrets(t *testing.T) {
	t.Parallel()
	const user, password, token = "shop@example.com", "s3cret, with spaces", "ya29.token-of-somebody"
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	initial := encoded("\x00" + user + "\x00" + password)
	xoauth := encoded("user=" + user + "\x01auth=Bearer " + token + "\x01\x01")
	auth := func(mechs string) string {
		return "<- 220 mx.test\n-> EHLO *\n<- 250-mx.test\n<- 250 AUTH " + mechs + "\n"
	}
	for _, row := range []struct {
		name, dialog, want string
		relay              smtpsend.Relay
	}{
		{name: "PLAIN", relay: smtpsend.Relay{Username: user, Password: password},
			dialog: auth("PLAIN") + "-> AUTH PLAIN *\n<- 535-5.7.8 you said " + initial + "\n<- 535 5.7.8 and " + password +
				" and " + strings.TrimRight(encoded(password), "=") + "\n",
			want: "C AUTH PLAIN\nS 535 5.7.8 you said *** / 5.7.8 and *** and ***\n"},
		{name: "LOGIN", relay: smtpsend.Relay{Username: user, Password: password},
			dialog: auth("LOGIN") + "-> AUTH LOGIN\n<- 334 VXNlcm5hbWU6\n-> " + encoded(user) + "\n<- 334 UGFzc3dvcmQ6\n-> " +
				encoded(password) + "\n<- 535 5.7.8 bad: " + encoded(user) + " " + encoded(password) + "\n",
			want: "C AUTH LOGIN\nS 334 (a challenge, not shown)\nC (the answer, not shown)\nS 334 (a challenge, not shown)\n" +
				"C (the answer, not shown)\nS 535 5.7.8 bad: *** ***\n"},
		{name: "XOAUTH2", relay: smtpsend.Relay{Username: user, AccessToken: token},
			dialog: auth("XOAUTH2") + "-> AUTH XOAUTH2 *\n<- 334 eyJzdGF0dXMiOiI0MDAifQ==\n-> *\n<- 535 5.7.8 " + xoauth + "\n",
			want:   "C AUTH XOAUTH2\nS 334 (a challenge, not shown)\nC (the answer, not shown)\nS 535 5.7.8 ***\n"},
		{name: "later", relay: smtpsend.Relay{Username: user, Password: password},
			dialog: auth("PLAIN") + "-> AUTH PLAIN *\n<- 235 ok\n-> MAIL *\n<- 550 5.7.1 " + password + " " + initial + "\n",
			want:   "C AUTH PLAIN\nS 235 ok\nC MAIL FROM:<a@example.com>\nS 550 5.7.1 *** ***\n"},
		{name: "a short password leaves other words whole", relay: smtpsend.Relay{Username: "auth", Password: "cat"},
			dialog: auth("PLAIN") + "-> AUTH PLAIN *\n<- 535 5.7.8 Authentication failed, no cat: " + encoded("\x00auth\x00cat") + "\n",
			want:   "C AUTH PLAIN\nS 535 5.7.8 Authentication failed, no cat: ***\n"},
		{name: "a common password leaves other words whole", relay: smtpsend.Relay{Username: "user", Password: "mail"},
			dialog: auth("PLAIN") + "-> AUTH PLAIN *\n<- 535 5.7.8 mailbox user@mail.example: mail " + encoded("mail") + "\n",
			want:   "C AUTH PLAIN\nS 535 5.7.8 mailbox user@mail.example: *** ***\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			server := playDialog(t, row.dialog)
			relay, m, o := parseSend(t, server, nil)
			relay.Username, relay.Password = row.relay.Username, row.relay.Password
			relay.AccessToken = row.relay.AccessToken
			sender, err := smtpsend.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer sender.Close()
			result, _ := sender.Send(context.Background(), relay, m)
			got := told(result.Dialogue)
			for _, secret := range []string{password, token, initial, xoauth, encoded(password), encoded(token),
				encoded(user)} {
				if strings.Contains(got, strings.TrimRight(secret, "=")) {
					t.Errorf("the dialogue has %q:\n%s", secret, got)
				}
			}
			if !strings.HasSuffix(got, row.want) {
				t.Errorf("dialogue:\n%swant at its end:\n%s", got, row.want)
			}
		})
	}
}

// TestDialogueIsBounded: replies of 10 kB and a hundred recipients fit into the bounds, and the first and the
// last lines stay.
func TestDialogueIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<script>alert(1)</script> ", 400)
	dialog := "<- 220 mx.test " + long + "\n-> EHLO *\n<- 250-mx.test\n<- 250 PIPELINING\n-> MAIL *\n"
	answers := "<- 250 ok\n"
	var to []string
	for i := range 90 {
		to = append(to, fmt.Sprintf("person-%d@example.org", i))
		dialog += "-> RCPT *\n"
		answers += "<- 250 " + long + "\n"
	}
	dialog += "-> DATA\n" + answers + "<- 451 4.3.0 disk full\n"
	server := playDialog(t, dialog)
	relay, m, o := parseSend(t, server, nil)
	m.To = to
	sender, err := smtpsend.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	result, _ := sender.Send(context.Background(), relay, m)
	total := 0
	for i, l := range result.Dialogue {
		if total += len(l.Text); len(l.Text) > 240 || !utf8.ValidString(l.Text) {
			t.Errorf("line %d has %d bytes: %q", i, len(l.Text), l.Text)
		}
	}
	got := told(result.Dialogue)
	if n := len(result.Dialogue); n < 10 || n > 20 || total > 2<<10+50 {
		t.Errorf("%d lines, %d bytes:\n%s", n, total, got)
	}
	for _, want := range []string{"- connecting to", "lines are left out", "S 451 4.3.0 disk full"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestDialogueCutsNoAddress: a part of an address would stay when its person is erased.
func TestDialogueCutsNoAddress(t *testing.T) {
	t.Parallel()
	for before := 150; before < 200; before += 7 {
		server := playDialog(t, plain+"-> MAIL *\n<- 550 5.7.1 "+strings.Repeat("x", before)+
			" <a-long-name-of-a-person@example.org> is refused\n")
		relay, m, o := parseSend(t, server, nil)
		sender, err := smtpsend.New(o)
		if err != nil {
			t.Fatal(err)
		}
		result, _ := sender.Send(context.Background(), relay, m)
		_ = sender.Close()
		got := told(result.Dialogue)
		whole := strings.Contains(got, "a-long-name-of-a-person@example.org>")
		if !whole && strings.Contains(got, "<a-") {
			t.Errorf("a part of the address is left:\n%s", got)
		}
	}
}

// TestDialogueOfUsedConnections: it begins with a note, whether the connection was idle or the envelope left
// with the dot before.
func TestDialogueOfUsedConnections(t *testing.T) {
	t.Parallel()
	server := playDialog(t, hello+"-> MAIL *\n-> RCPT *\n-> DATA\n<- 250 ok\n<- 250 ok\n<- 354 go\n.. body\n<- 250 ok\n"+
		"-> MAIL *\n-> RCPT *\n-> DATA\n<- 250 ok\n<- 550 5.1.1 no\n<- 503 no\n")
	relay, m, o := parseSend(t, server, nil)
	sender, err := smtpsend.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	first, err := sender.Send(context.Background(), relay, m)
	if err != nil || first.Dialogue != nil {
		t.Fatalf("%v, %v", first.Dialogue, err)
	}
	began := time.Now()
	second, _ := sender.Send(context.Background(), relay, m)
	want := "- a connection that was used before, to 127.0.0.1, transactions before this one: 1\n" +
		"C MAIL FROM:<a@example.com>\nC RCPT TO:<b@example.org>\nC DATA\nS 250 ok\nS 550 5.1.1 no\nS 503 no\n"
	if diff := cmp.Diff(want, told(second.Dialogue)); diff != "" {
		t.Errorf("dialogue (-want +got):\n%s", diff)
	}
	for i, l := range second.Dialogue {
		if l.At < 0 || l.At > time.Since(began) || i > 0 && l.At < second.Dialogue[i-1].At {
			t.Errorf("line %d at %s", i, l.At)
		}
	}
}

// TestDialogueOfAnEnvelopeAhead: the envelope of a message that left with the dot before is in its dialogue,
// after the note.
func TestDialogueOfAnEnvelopeAhead(t *testing.T) {
	t.Parallel()
	server := playDialog(t, hello+"-> MAIL *\n-> RCPT *\n-> DATA\n<- 250 ok\n<- 250 ok\n<- 354 go\n.. body\n"+
		"-> MAIL *\n-> RCPT *\n-> DATA\n<- 250 ok\n<- 250 ok\n<- 451 4.3.0 later\n<- 503 no\n")
	relay, m, o := parseSend(t, server, nil)
	sender, err := smtpsend.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	second := make(chan smtpsend.Result, 1)
	follower := m
	m.BeforeDot = func(context.Context, []string) error {
		go func() {
			r, _ := sender.Send(context.Background(), relay, follower)
			second <- r
		}()
		eventually(t, "the next message is in line", func() bool { return sender.InLine() == 1 })
		return nil
	}
	if _, err := sender.Send(context.Background(), relay, m); err != nil {
		t.Fatal(err)
	}
	got := told((<-second).Dialogue)
	want := "- a connection that was used before, to 127.0.0.1, transactions before this one: 1\n" +
		"C MAIL FROM:<a@example.com>\nC RCPT TO:<b@example.org>\nC DATA\nS 250 ok\nS 451 4.3.0 later\nS 503 no\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dialogue (-want +got):\n%s", diff)
	}
}
