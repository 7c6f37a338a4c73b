package e2e_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestAccountsStayOutsideOfTheNetwork is an instance whose accounts are of people that the operator does not
// trust: they learn nothing of what listens in the operator's network. The relay of the settings is there.
func TestAccountsStayOutsideOfTheNetwork(t *testing.T) {
	t.Parallel()
	relay, redis := testsmtp.Start(t, testsmtp.Options{}), testredis.Server(t)
	a := apptest.Run(t, map[string]string{"smtp": relay.URL(), "from": "shop@example.com",
		"redis.url":           redis.URL(),
		"relays.allowPrivate": "false"})
	ctx, client := t.Context(), api.NewClient(a.URL(), a.Token(), nil)
	host, port := relay.Host(), relay.Port()

	_, err := api.CreateAccount.Do(ctx, client, api.Account{Account: "inner", Email: "a@inner.example",
		SMTP: &api.SMTPServer{Host: host, Port: port}})
	names(t, err, "smtp.host")
	_, err = api.CreateGateway.Do(ctx, client, api.Gateway{Gateway: "inner", Host: "mail.example.com", Port: 25,
		Proxy: "socks5://10.0.0.1"})
	names(t, err, "proxy")
	_, err = api.Submit.Do(ctx, client, api.SubmitRequest{To: api.Addresses{{Address: "b@example.net"}},
		Text: "x", Proxy: "http://127.0.0.1:3128"})
	names(t, err, "proxy")

	var told string
	for _, server := range []api.SMTPServer{{Host: host, Port: port}, {Host: host, Port: 1},
		{Host: "localhost", Port: port}} {
		answer, err := api.VerifyAccount.Do(ctx, client, api.VerifyRequest{SMTP: &server})
		if err != nil || answer.SMTP.Success || told != "" && answer.SMTP.Error != told {
			t.Errorf("%+v: %+v, %v; before: %s", server, answer.SMTP, err, told)
		}
		told = answer.SMTP.Error
	}
	if !strings.HasSuffix(told, "the address is not a public one, and relays.allowPrivate is off") {
		t.Errorf("told: %s", told)
	}
	if n := relay.Connections(); n > 0 {
		t.Errorf("%d connections", n)
	}
	if _, err := api.Submit.Do(ctx, client, api.SubmitRequest{To: api.Addresses{{Address: "b@example.net"}},
		Text: "x"}); err != nil {
		t.Fatal(err)
	}
	relay.Wait(1)
}

// names fails the test unless an error is about a field of the request.
func names(t *testing.T, err error, field string) {
	t.Helper()
	e, ok := errors.AsType[*api.Failure](err)
	if !ok || e.Problem.StatusCode != 400 || len(e.Problem.Fields) != 1 || e.Problem.Fields[0].Key != field {
		t.Errorf("%v, want 400 about %s", err, field)
	}
}

// TestMailIsHeldWhenItsRelayMayNotBeDialed: the account was stored while private addresses were allowed.
func TestMailIsHeldWhenItsRelayMayNotBeDialed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	redis := testredis.Server(t)
	set := func(role, private string) map[string]string {
		return map[string]string{"redis.url": redis.URL(), "secret": strings.Repeat("s", 32), "role": role,
			"relays.allowPrivate": private, "delivery.accountTrouble": "hold", "token": strings.Repeat("t", 32)}
	}
	a := apptest.Run(t, set("api", "true"))
	ctx, client := t.Context(), api.NewClient(a.URL(), a.Token(), nil)
	_, err = api.CreateAccount.Do(ctx, client, api.Account{Account: "shop", Email: "shop@example.com",
		SMTP: &api.SMTPServer{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Submit.Do(ctx, client, api.SubmitRequest{Account: "shop", Text: "x",
		To: api.Addresses{{Address: "b@example.net"}}}); err != nil {
		t.Fatal(err)
	}
	apptest.Run(t, set("worker", "false"))
	var info api.AccountInfo
	for deadline := time.Now().Add(time.Minute); info.State != "held"; time.Sleep(20 * time.Millisecond) {
		if info, err = api.GetAccount.Do(ctx, client, "shop"); err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", info, err)
		}
	}
	if !strings.HasSuffix(info.LastError, "relays.allowPrivate is off") ||
		strings.Contains(info.LastError, "127.") {
		t.Errorf("the reason: %s", info.LastError)
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("it was dialed")
	}
}
