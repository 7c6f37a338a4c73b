package smtpsend_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// many are n recipients.
func many(n int) []string {
	to := make([]string, n)
	for i := range to {
		to[i] = fmt.Sprintf("r%d@example.org", i)
	}
	return to
}

func ownPath(to string) string {
	local, _, _ := strings.Cut(to, "@")
	return "bounces+" + local + "@bounce.example.com"
}

// Recipients with return paths of their own share no transaction, so none of them sees the others' paths.
// What happens in one transaction does not concern the others.
func TestEachRecipientHasItsReturnPath(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "RCPT" && c.Arg == "r1@example.org" {
			return testsmtp.Action{Reply: "550 5.1.1 no such user"}
		}
		return testsmtp.Action{}
	}})
	sender, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	announced := 0
	r, err := sender.Send(t.Context(), smtpsend.Relay{Host: relay.Host(), Port: relay.Port()}, smtpsend.Message{
		From: "shop@example.com", To: many(4), Body: smtpsend.Bytes("Subject: x\r\n\r\nx\r\n"), ReturnPath: ownPath,
		Answered: func(context.Context, []smtpsend.RecipientResult) error { announced++; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range r.Recipients {
		if refused := one.Err != nil; refused != (i == 1) || refused && !one.Err.Suppress {
			t.Errorf("%s: %v", one.Address, one.Err)
		}
	}
	var got []string
	for _, m := range relay.Messages() {
		got = append(got, m.From+" "+strings.Join(m.To, " "))
	}
	want := []string{"bounces+r0@bounce.example.com r0@example.org", "bounces+r2@bounce.example.com r2@example.org",
		"bounces+r3@bounce.example.com r3@example.org"}
	if !slices.Equal(got, want) || announced != 3 {
		t.Errorf("%v, announced %d times", got, announced)
	}
}

func TestInvalidReturnPath(t *testing.T) {
	t.Parallel()
	sender, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	_, err = sender.Send(t.Context(), smtpsend.Relay{Host: "127.0.0.1", Port: 1}, smtpsend.Message{
		From: "shop@example.com", To: many(1), Body: smtpsend.Bytes("x"),
		ReturnPath: func(string) string { return "a>\r\nRCPT TO:<b@x" }})
	if err == nil || !strings.Contains(err.Error(), "invalid return path") {
		t.Error(err)
	}
}

// BenchmarkReturnPaths compares a return path that all recipients share with one for each.
func BenchmarkReturnPaths(b *testing.B) {
	for _, size := range []int{4 << 10, 100 << 10} {
		body := smtpsend.Bytes(bytes.Repeat([]byte("0123456789 abcdefghijklmnopqrstuvwxyz 0123456789 ABCDEFGH\r\n"),
			size/59))
		for _, n := range []int{1, 3, 50} {
			for name, path := range map[string]func(string) string{"shared": nil, "own": ownPath} {
				b.Run(fmt.Sprintf("%dKB/%d/%s", size>>10, n, name), func(b *testing.B) {
					sink := testsmtp.Start(b, testsmtp.Options{Discard: true})
					sender, err := smtpsend.New(smtpsend.Options{})
					if err != nil {
						b.Fatal(err)
					}
					defer sender.Close()
					relay := smtpsend.Relay{Host: sink.Host(), Port: sink.Port()}
					for b.Loop() {
						if _, err := sender.Send(b.Context(), relay, smtpsend.Message{
							From: "a@example.com", To: many(n), Body: body, ReturnPath: path,
						}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(sink.Count())/float64(b.N), "transactions/op")
				})
			}
		}
	}
}
