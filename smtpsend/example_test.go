package smtpsend_test

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// A message to three recipients: each has its own answer.
func ExampleSender_Send() {
	server, err := testsmtp.New(testsmtp.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	sender, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sender.Close()

	result, err := sender.Send(context.Background(), smtpsend.Relay{Host: server.Host(), Port: server.Port()},
		smtpsend.Message{
			From: "news@example.com",
			To:   []string{"ann@example.org", "rcpt-550@example.org", "rcpt-451@example.org"},
			Body: smtpsend.Bytes("Subject: hello\r\n\r\nworld\r\n"),
			BeforeDot: func(_ context.Context, accepted []string) error {
				fmt.Println("about to be delivered to", accepted)
				return nil
			},
		})
	fmt.Println("error:", err)
	for _, r := range result.Recipients {
		if e := r.Err; e != nil {
			fmt.Println(r.Address, e.Verdict, "permanent:", e.Permanent(), "reply:", e.Line)
			continue
		}
		fmt.Println(r.Address, "delivered")
	}
	// Output:
	// about to be delivered to [ann@example.org]
	// error: <nil>
	// ann@example.org delivered
	// rcpt-550@example.org hard permanent: true reply: 550 5.1.1 User unknown
	// rcpt-451@example.org soft permanent: false reply: 451 4.3.0 Temporary failure, try again later
}
