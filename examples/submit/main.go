// Command submit hands one email to Postroom, in the way an application should: under an idempotency key, so
// that repeating it is safe, and repeated while no answer comes.
//
//	POSTROOM_URL=http://127.0.0.1:3000 POSTROOM_TOKEN=… go run ./examples/submit ann@example.net order-12345
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/postroom/postroom/api"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: submit ADDRESS ORDER")
		os.Exit(2)
	}
	client := api.NewClient(os.Getenv("POSTROOM_URL"), os.Getenv("POSTROOM_TOKEN"), nil)
	answer, err := confirmOrder(ctx, client, os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer.QueueID, answer.Idempotency.Status)
}

// confirmOrder mails the confirmation of an order. The key names the mail by what it is about, not by the
// call: whoever asks again, after a time-out, a crash or a double click, gets the first answer and sends
// nothing.
func confirmOrder(ctx context.Context, client *api.Client, to, order string) (api.SubmitAnswer, error) {
	return submit(ctx, client, api.SubmitRequest{
		To:             api.Addresses{{Address: to}},
		Subject:        "Your order " + order,
		Text:           "Thank you. We will write again when it is on its way.",
		IdempotencyKey: "order-" + order + "-confirmation",
		Tags:           []string{"orders"},
	})
}

// patience is how long a submit is repeated.
const patience = time.Minute

// submit repeats a request while Postroom is away or does not answer. A refusal is final: the same request
// would meet it again.
func submit(ctx context.Context, client *api.Client, req api.SubmitRequest) (api.SubmitAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		answer, err := api.Submit.Do(ctx, client, req)
		refusal, answered := errors.AsType[*api.Failure](err)
		if err == nil || answered && refusal.Problem.StatusCode < http.StatusInternalServerError {
			return answer, err
		}
		if answered {
			wait = max(wait, refusal.RetryAfter)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return answer, err
		}
	}
}
