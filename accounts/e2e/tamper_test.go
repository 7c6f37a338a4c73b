package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestARelayMovedInRedisGetsNoPassword: an attacker who can write to Redis moves an account's relay to their
// own port. Submits say what is wrong until the password is entered again, and other accounts continue.
func TestARelayMovedInRedisGetsNoPassword(t *testing.T) {
	t.Parallel()
	mine := testsmtp.Start(t, testsmtp.Options{Username: "u", Password: "secret"})
	theirs := testsmtp.Start(t, testsmtp.Options{})
	url := testredis.URL(t)
	a := apptest.Run(t, map[string]string{"redis.url": url, "smtp": theirs.URL(), "from": "other@example.com"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	relay := api.SMTPServer{Host: mine.Host(), Port: mine.Port(), Auth: &api.SMTPAuth{User: "u", Pass: "secret"}}
	_, err := api.CreateAccount.Do(t.Context(), client, api.Account{Account: "shop", Email: "shop@example.com",
		SMTP: &relay})
	if err != nil {
		t.Fatal(err)
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	store := redis.NewClient(o)
	t.Cleanup(func() { store.Close() })
	key, port := redisdb.Key(0, "account", "shop"), fmt.Sprintf(`"port":%d`, mine.Port())
	record, err := store.HGet(t.Context(), key, "record").Result()
	if err != nil || !strings.Contains(record, port) {
		t.Fatalf("%q, %v", record, err)
	}
	moved := strings.Replace(record, port, fmt.Sprintf(`"port":%d`, theirs.Port()), 1)
	if err := store.HSet(t.Context(), key, "record", moved).Err(); err != nil {
		t.Fatal(err)
	}
	if err := store.Incr(t.Context(), redisdb.Key(0, "accounts", "version")).Err(); err != nil {
		t.Fatal(err)
	}
	shop := mailFrom("", "ann@example.net")
	shop.Account = "shop"
	apptest.Eventually(t, "a submit is refused", func() bool {
		_, err = api.Submit.Do(t.Context(), client, shop)
		return err != nil
	})
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.StatusCode != http.StatusServiceUnavailable ||
		f.Problem.Code != "AccountUnreadable" || !strings.Contains(f.Problem.Message, "their host or port, or this instance's secret changed") {
		t.Errorf("a submit of the account: %v, want 503 with the cause", err)
	}
	if _, err := api.Submit.Do(t.Context(), client, mailFrom("", "ann@example.net")); err != nil {
		t.Errorf("a submit of another account: %v", err)
	}
	again := api.AccountPatch{SMTP: new(&relay)}
	if _, err := api.UpdateAccount.Do(t.Context(), client, again, "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Submit.Do(t.Context(), client, shop); err != nil {
		t.Errorf("after the password was entered again: %v", err)
	}
}
