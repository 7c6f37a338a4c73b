package smtpsend_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/postroom/postroom/smtpsend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write what came of each dialog into testdata instead of comparing")

// TestTranscripts plays the dialogs of testdata/*.txt. Each begins with a line "=== name", then
//
//	send KEY=VALUE …   what is sent: from, to (by commas), data (\r and \n escaped), tls, user, pass, token,
//	                   auth, trust (the server's CA), timeout, basic, 8bit, utf8, dsn, requiretls; behind: it
//	                   is sent over the only connection and stands in line for it before the dot of the
//	                   message above is written
//	@hello WORD …      the greeting and an EHLO answer offering these
//	the dialog         in the language of dialogServer
//	=> line            what came of it, as render writes it
func TestTranscripts(t *testing.T) { playAll(t, "testdata/*.txt") }

// TestDecisionTable plays each row of the table of verdicts: one file a row, named after it, one dialog for
// each kind of evidence in it. testdata/README.md lists the rows without dialogs and the tests they have
// instead.
func TestDecisionTable(t *testing.T) { playAll(t, "testdata/table/*.txt") }

func playAll(t *testing.T, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		preamble, rest, _ := strings.Cut("\n"+string(b), "\n=== ")
		out := strings.TrimPrefix(preamble, "\n")
		theme := strings.TrimSuffix(filepath.Base(file), ".txt")
		for _, scenario := range strings.Split(rest, "\n=== ") {
			name, text, _ := strings.Cut(scenario, "\n")
			var got string
			t.Run(theme+"/"+name, func(t *testing.T) {
				if !*update {
					t.Parallel()
				}
				got = play(t, text)
				if want := outcome(text); !*update && got != want {
					t.Errorf("outcome (-want +got):\n%s", cmp.Diff(want, got))
				}
			})
			out += "\n=== " + name + "\n" + strings.TrimRight(withoutOutcome(text), "\n") + "\n" + got
		}
		if *update {
			if err := os.WriteFile(file, []byte(strings.TrimLeft(out, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func outcome(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "=>") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func withoutOutcome(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "=>") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// play has the conversation and returns its result.
func play(t *testing.T, text string) string {
	var dialog strings.Builder
	var sends [][]string
	for _, line := range strings.Split(text, "\n") {
		switch words := strings.Fields(line); {
		case len(words) > 0 && words[0] == "send":
			sends = append(sends, words[1:])
		case len(words) > 0 && words[0] == "@hello":
			dialog.WriteString("<- 220 mx.test ESMTP\n-> EHLO client.test\n")
			dialog.WriteString(ehlo(words[1:]))
		case len(words) > 0 && words[0] == "@ehlo":
			dialog.WriteString("-> EHLO client.test\n" + ehlo(words[1:]))
		default:
			dialog.WriteString(line + "\n")
		}
	}
	c := &cast{t: t, server: playDialog(t, dialog.String()), sends: sends,
		said: make([]strings.Builder, len(sends)), senders: map[bool]*smtpsend.Sender{}}
	for c.next < len(sends) {
		c.send(c.take())
		c.group.Wait()
	}
	var out strings.Builder
	for i := range c.said {
		out.WriteString(c.said[i].String())
	}
	for _, s := range c.senders {
		_ = s.Close()
	}
	return out.String()
}

// cast is who has a conversation: the server, and those who send to it.
type cast struct {
	t       *testing.T
	server  *dialogServer
	senders map[bool]*smtpsend.Sender
	sends   [][]string
	said    []strings.Builder // each send's
	next    int               // send not begun yet
	group   sync.WaitGroup
}

func (c *cast) take() int {
	c.next++
	return c.next - 1
}

// send sends one message. Before its dot the next gets in line, if it is to.
func (c *cast) send(i int) {
	relay, m, o := parseSend(c.t, c.server, c.sends[i])
	basic := o.Classifier == "basic"
	if c.senders[basic] == nil {
		s, err := smtpsend.New(o)
		if err != nil {
			c.t.Error(err)
			return
		}
		c.senders[basic] = s
	}
	sender, out := c.senders[basic], &c.said[i]
	m.BeforeDot = func(_ context.Context, accepted []string) error {
		fmt.Fprintf(out, "=> before the dot: %s\n", strings.Join(accepted, " "))
		if strings.Contains(string(m.Body.(smtpsend.Bytes)), "do not record") {
			return errors.New("the journal is away")
		}
		if c.next < len(c.sends) && slices.Contains(c.sends[c.next], "behind") {
			n := c.take()
			c.group.Go(func() { c.send(n) })
			eventually(c.t, "the next message is in line", func() bool { return sender.InLine() == 1 })
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	result, err := sender.Send(ctx, relay, m)
	out.WriteString(render(result, err))
}

func ehlo(words []string) string {
	lines := append([]string{"mx.test"}, words...)
	var b strings.Builder
	for i, word := range lines {
		sep := "-"
		if i == len(lines)-1 {
			sep = " "
		}
		b.WriteString("<- 250" + sep + strings.ReplaceAll(word, "_", " ") + "\n")
	}
	return b.String()
}

func parseSend(t *testing.T, server *dialogServer, words []string) (smtpsend.Relay, smtpsend.Message,
	smtpsend.Options) {
	relay := smtpsend.Relay{Host: server.host(), Port: server.port(), EHLOName: "client.test",
		TLS: smtpsend.TLSNone, Connections: 1}
	m := smtpsend.Message{From: "a@example.com", To: []string{"b@example.org"},
		Body: smtpsend.Bytes("Subject: x\r\n\r\nhello\r\n")}
	o := smtpsend.Options{Timeout: 10 * time.Second}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "from":
			m.From = value
		case "to":
			m.To = strings.Split(value, ",")
		case "data":
			m.Body = smtpsend.Bytes(strings.NewReplacer(`\r`, "\r", `\n`, "\n", "_", " ").Replace(value))
		case "tls":
			relay.TLS = map[string]smtpsend.TLSMode{
				"auto": smtpsend.TLSAuto, "implicit": smtpsend.TLSImplicit, "required": smtpsend.TLSRequired,
				"opportunistic": smtpsend.TLSOpportunistic, "none": smtpsend.TLSNone,
			}[value]
		case "user":
			relay.Username = value
		case "pass":
			relay.Password = value
		case "token":
			relay.AccessToken = value
		case "auth":
			relay.AuthMethod = value
		case "trust":
			relay.CA = server.ca
		case "timeout":
			o.Timeout, _ = time.ParseDuration(value)
		case "basic":
			o.Classifier = "basic"
		case "8bit":
			m.EightBit = true
		case "utf8":
			m.UTF8 = true
		case "requiretls":
			m.RequireTLS = true
		case "behind": // see cast.send
		case "dsn":
			m.DSN = smtpsend.DSN{Return: "HDRS", Envelope: "id 1", Notify: "FAILURE,DELAY"}
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
	return relay, m, o
}

// render writes the result of a message, a line for each recipient and one for the whole.
func render(result smtpsend.Result, err error) string {
	var b strings.Builder
	for _, r := range result.Recipients {
		if r.Err == nil {
			fmt.Fprintf(&b, "=> %s: delivered: %s\n", r.Address, r.Response)
		} else {
			fmt.Fprintf(&b, "=> %s: %s\n", r.Address, describe(r.Err))
		}
	}
	var whole *smtpsend.Error
	if errors.As(err, &whole) {
		fmt.Fprintf(&b, "=> error: %s: %s\n", describe(whole), whole)
	}
	return b.String()
}

func describe(e *smtpsend.Error) string {
	words := []string{string(e.Verdict), string(e.Scope), e.Name(), "at", string(e.Phase)}
	for _, flag := range []struct {
		on   bool
		word string
	}{
		{e.Suppress, "suppress"}, {e.InDoubt, "in-doubt"}, {e.Reconnect, "reconnect"},
		{e.NewTransaction, "new-transaction"}, {e.Permanent(), "permanent"},
	} {
		if flag.on {
			words = append(words, flag.word)
		}
	}
	if e.RetryAfter > 0 {
		words = append(words, "after", e.RetryAfter.String())
	}
	if e.Code != 0 {
		words = append(words, fmt.Sprint(e.Code), e.Enhanced)
	}
	return strings.TrimSpace(strings.Join(words, " "))
}
