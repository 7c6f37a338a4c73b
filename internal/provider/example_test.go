package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/postroom/postroom/internal/provider"
)

// A request of Postmark, which signs nothing: the secret is the password that the address was set up with.
func Example() {
	verifier, err := provider.New(provider.Postmark, provider.Options{
		Secrets: []string{"the new secret of today", "the secret of last month"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	header := http.Header{}
	// postroom:the secret of last month
	header.Set("Authorization", "Basic cG9zdHJvb206dGhlIHNlY3JldCBvZiBsYXN0IG1vbnRo")
	request := provider.Request{
		Header: header,
		Body: []byte(`{"RecordType":"Bounce","Type":"HardBounce","ID":42,"Email":"ann@example.net","BouncedAt":"2026-01-02T03:04:05Z",
			"MessageID":"2706ee8a-737c-4285-b032-ccd317af53ed","Details":"smtp;550 5.1.1 no such user"}`),
	}
	if err := verifier.Verify(context.Background(), request, time.Now()); err != nil {
		fmt.Println("refused:", err)
		return
	}
	batch, err := provider.Read(provider.Postmark, request)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range batch.Events {
		fmt.Println(e.Key, e.Kind, e.Bounce, e.Recipient, e.SMTPCode, e.Enhanced)
	}
	// Output: 42@Bounce bounced hard ann@example.net 550 5.1.1
}
