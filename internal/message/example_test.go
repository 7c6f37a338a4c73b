package message_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// A draft becomes the bytes to send and the envelope to send them with.
func ExampleCompose() {
	composed, err := message.Compose(message.Draft{
		From:      message.Address{Name: "Ann", Address: "ann@example.com"},
		To:        []message.Address{{Name: "Jürgen", Address: "juergen@bücher.example"}},
		Bcc:       []message.Address{{Address: "archive@example.com"}},
		Date:      time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		MessageID: "order-17@example.com",
		Subject:   "Your order",
		Text:      "It is on its way.\n",
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.ReplaceAll(string(composed.Raw), "\r\n", "\n"))
	fmt.Println("for", composed.Envelope.To)
	// Output:
	// From: Ann <ann@example.com>
	// To: =?utf-8?Q?J=C3=BCrgen?= <juergen@xn--bcher-kva.example>
	// Subject: Your order
	// Date: Sun, 01 Mar 2026 12:00:00 +0000
	// Message-ID: <order-17@example.com>
	// MIME-Version: 1.0
	// Content-Type: text/plain; charset=utf-8
	// Content-Transfer-Encoding: 7bit
	//
	// It is on its way.
	//
	// for [juergen@xn--bcher-kva.example archive@example.com]
}

// Everything that is wrong with a draft is reported together, with the request's field names.
func ExampleCompose_faults() {
	_, err := message.Compose(message.Draft{
		From:    message.Address{Address: "ann@example.com"},
		To:      []message.Address{{Address: "bob"}},
		Date:    time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Headers: []message.Header{{Name: "X-Note", Value: "a\r\nBcc: everybody@example.com"}},
	}, nil)
	fmt.Println(err)
	// Output:
	// Invalid input: to[0].address: is not a valid email address: it has no @; headers.X-Note: must not contain a line break
}
