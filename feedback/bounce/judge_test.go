package bounce

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/smtpsend"
)

// TestVerdicts are replies that mean something else in a bounce than they do to ourselves, or that no rule
// for replies knows.
func TestVerdicts(t *testing.T) {
	for _, row := range []struct {
		diagnostic string
		want       smtpsend.Verdict
		suppress   bool
	}{
		{"550 5.1.1 <x@receiver.example>: Recipient address rejected: User unknown", smtpsend.Hard, true},
		{"host mx.receiver.example refused to talk to me: 554 mx.receiver.example ESMTP not accepting messages",
			smtpsend.Block, false},
		{"host mx.receiver.example refused to talk to me: 550 5.1.1 mx.receiver.example: user unknown",
			smtpsend.Block, false},
		{"521 5.2.1 : the server will not accept delivery of this message.", smtpsend.Block, false},
		{"554 5.4.6 Too many hops", smtpsend.Soft, false},
		{"554 5.4.14 Hop count exceeded - possible mail loop ATTR34", smtpsend.Soft, false},
		{"550 5.4.7 Delivery expired (message too old)", smtpsend.Soft, false},
		{"550 5.4.316 Message expired, connection refused(Socket error code 10061)", smtpsend.Soft, false},
		{"554 5.4.4 Unable to route: no mail hosts for domain", smtpsend.Hard, true},
		{"[receiver.example]: Name or service not known", smtpsend.Hard, true},
		{"Host or domain name not found. Name service error for name=receiver.example type=MX: Host not found, try again", smtpsend.Soft, false},
		{"all hosts have been failing for a long time and were last tried after this message arrived",
			smtpsend.Soft, false},
		{"mailbox is full: retry timeout exceeded", smtpsend.Hard, false},
		{"551 not our user", smtpsend.Hard, true},
		{"550 BAD_RECIPIENT", smtpsend.Hard, true},
		{"550 cuda_nsu x@receiver.example", smtpsend.Hard, true},
		{"530 Authentication required", smtpsend.Policy, false},
		{"550 Verification failed for <s@sender.example> No Such User Here Sender verify failed", smtpsend.Policy,
			false},
		{"550 5.6.0 <x@receiver.example>: Recipient address rejected: Media error", smtpsend.Policy, false},
		{"554 5.3.0 <x@receiver.example>: Recipient address rejected: Mailer error", smtpsend.Policy, false},
		{"550 5.0.0 <x@receiver.example>: Recipient address rejected: On hold", smtpsend.Policy, false},
		{"503 Improper sequence of commands", smtpsend.Policy, false},
		{"550 'x@receiver.example' is not a registered gateway user", smtpsend.Policy, false},
		{"550 Unknown user x@docomo.example", smtpsend.Policy, false},
		{"User x (x@receiver.example) not listed in public Name & Address Book", smtpsend.Hard, true},
		{"550 5.7.1 This user does not accept mail from your address", smtpsend.Policy, false},
	} {
		mail := "From: MAILER-DAEMON@relay.example\nSubject: Undelivered\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\n\nSorry.\n\n" +
			"--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; relay.example\n\nFinal-Recipient: rfc822; x@receiver.example\nAction: failed\nStatus: 5.0.0\n" +
			"Diagnostic-Code: x-unix; " + row.diagnostic + "\n\n--b--\n"
		r, err := Read(strings.NewReader(mail), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Recipients) != 1 || r.Recipients[0].Verdict != row.want ||
			r.Recipients[0].Suppress != row.suppress {
			t.Errorf("%s: read as %+v", row.diagnostic, r.Recipients)
		}
	}
}

// TestSenderThatDoesNotExist: a refusal of the client's name must not suppress the recipient.
func TestSenderThatDoesNotExist(t *testing.T) {
	mail := sample(t, "dsn-no-data-record.eml")
	reply := "550 5.4.4 [internal] Name service error for name=receiver.example type=A: Host found but no data record of requested type"
	for _, said := range []string{"550 your host name does not exist", "550 reverse address lookup failed",
		"550 we do not accept mail to this host from you"} {
		changed := strings.Replace(strings.Replace(mail, reply, said, 1), "Status: 5.4.4", "Status: 5.0.0", 1)
		if r := read(t, changed, Options{}); len(r.Recipients) != 1 || r.Recipients[0].Code != 550 ||
			r.Recipients[0].Suppress {
			t.Errorf("%s: %+v", said, r.Recipients)
		}
	}
}
