package e2e_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

// TestASilentRelayHoldsFewVerifications: a fifth login to a server that says nothing is refused.
func TestASilentRelayHoldsFewVerifications(t *testing.T) {
	t.Parallel()
	a := apptest.Run(t, map[string]string{})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	_, text, _ := net.SplitHostPort(silent.Addr().String())
	port, _ := strconv.Atoi(text)
	request := api.VerifyRequest{SMTP: &api.SMTPServer{Host: "127.0.0.1", Port: port}}
	client := api.NewClient(a.URL(), a.Token(), http.DefaultClient)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() { _, _ = api.VerifyAccount.Do(ctx, client, request) })
		conn, err := silent.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	_, err = api.VerifyAccount.Do(ctx, client, request)
	f, ok := err.(*api.Failure)
	if !ok || f.Problem.StatusCode != http.StatusTooManyRequests || f.RetryAfter == 0 {
		t.Errorf("the fifth: %v", err)
	}
	cancel()
	waiting.Wait()
}
