package smtpd_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/server/smtpd"
)

// script is a client that sends its text, in pieces of some size, and keeps the replies.
type script struct {
	said  *bytes.Reader
	piece int
	told  bytes.Buffer
	end   bool
}

func (s *script) Read(p []byte) (int, error) {
	if s.end {
		return 0, net.ErrClosed
	}
	return s.said.Read(p[:min(len(p), s.piece)])
}

func (s *script) Write(p []byte) (int, error)      { return s.told.Write(p) }
func (s *script) Close() error                     { s.end = true; return nil }
func (s *script) LocalAddr() net.Addr              { return net.TCPAddrFromAddrPort(netip.AddrPort{}) }
func (s *script) RemoteAddr() net.Addr             { return net.TCPAddrFromAddrPort(netip.AddrPort{}) }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

var queuedReply = regexp.MustCompile(`(?m)^250 2\.0\.0 Ok: queued as Q\d+\r$`)

// FuzzConversation says anything to an inlet. It must come to an end without panicking. Each reply must be
// well formed, each message that is answered 250 must have reached the outbox and no other, and a text must
// mean the same however it is cut into pieces.
func FuzzConversation(f *testing.F) {
	envelope := "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n"
	for _, seed := range []string{
		"EHLO x\r\nQUIT\r\n", "HELO x\r\nNOOP\nRSET\r\n", "AUTH PLAIN AGEAYg==\r\n", "RSET\r\nAUTH LOGIN\r\n*\r\n",
		"STARTTLS\r\n",
		envelope + "DATA\r\n" + mailText + ".\r\n" + envelope + "BDAT 5\r\nhelloBDAT 0 LAST\r\nQUIT\r\n",
		envelope + "DATA\r\nx\n.\n" + forged, envelope + "DATA\r\nx\r\n.\n" + forged,
		envelope + "DATA\r\n..\r\n\r.\r\n.\r\nVRFY x\r\n",
		"MAIL FROM:<> SIZE=5 BODY=8BITMIME SMTPUTF8 RET=FULL ENVID=+41 AUTH=<>\r\nRCPT TO:<\"x y\\\"\"@ü.example> NOTIFY=DELAY,SUCCESS ORCPT=rfc822;a+2Bb\r\n",
		envelope + "BDAT 99999999999999999999 LAST\r\n", envelope + "BDAT 5000 LAST\r\n",
		"mail from:<@a,@b:c@d>\r\nrcpt to:<>>\r\n", "GET / HTTP/1.1\r\n\r\n",
		envelope + "DATA\r\n" + strings.Repeat("Received: x\r\n", 60) + "\r\n.\r\n",
		"\x00\xff\r\n\r\n \r\nMAIL\r\nRCPT TO:\r\n",
	} {
		f.Add([]byte(seed), uint16(7))
	}
	box := &outbox{}
	db := testredis.New(f)
	inlet, err := smtpd.New(smtpd.Parts{Submit: box.SubmitSMTP, Accounts: knownAccounts(f, db),
		Access: oneToken(f, db),
		Audit:  auditLog(f, db)},
		smtpd.Options{
			Listen: "127.0.0.1:0", Hostname: "mail.example.com", MaxMessage: 2000, MaxRecipients: 5,
		})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { inlet.Close() })
	converse := func(said []byte, piece int) (told string, messages []string) {
		box.got = nil
		c := &script{said: bytes.NewReader(said), piece: piece}
		inlet.Converse(c, token)
		for _, req := range box.got {
			messages = append(messages, string(req.Raw))
		}
		return c.told.String(), messages
	}
	f.Fuzz(func(t *testing.T, said []byte, piece uint16) {
		told, got := converse(said, len(said)+1)
		replies := bufio.NewReader(strings.NewReader(told))
		for {
			line, err := replies.ReadString('\n')
			if err == io.EOF && line == "" {
				break
			}
			if !replyLine.MatchString(line) || len(line) > 512 {
				t.Fatalf("%q is no line of a reply", line)
			}
		}
		if queued := len(queuedReply.FindAllString(told, -1)); queued != len(got) {
			t.Fatalf("%d messages were answered 250, and %d reached the outbox", queued, len(got))
		}
		again, gotAgain := converse(said, int(piece)%64+1)
		if again != told {
			t.Fatalf("in pieces: %s", cmp.Diff(told, again))
		}
		if diff := cmp.Diff(got, gotAgain); diff != "" {
			t.Fatalf("in pieces: %s", diff)
		}
	})
}
