package e2e_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

const trace = "zwqjxkvgh"

// naming returns the keys of Redis that have the person in their name or value.
func naming(t *testing.T, db *redisdb.DB) (keys []string) {
	t.Helper()
	c, ctx := db.Client(), t.Context()
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpack.Close()
	has := func(text string) bool {
		at := strings.Index(text, "\x28\xb5\x2f\xfd") // a frame of zstd (RFC 8878 section 3.1.1)
		if at >= 0 {
			plain, _ := unpack.DecodeAll([]byte(text[at:]), nil)
			text += string(plain)
		}
		return strings.Contains(strings.ToLower(text), trace)
	}
	if err := db.Scan(ctx, "*", func(some []string) error {
		for _, key := range some {
			values := []string{key}
			kind := c.Type(ctx, key).Val()
			if kind != "stream" { // its dump has deleted entries, too: see remaining in erasure.go
				values = append(values, c.Dump(ctx, key).Val())
			}
			switch kind {
			case "stream":
				for _, one := range c.XRange(ctx, key, "-", "+").Val() {
					values = append(values, fmt.Sprint(one.Values))
				}
			case "string":
				values = append(values, c.Get(ctx, key).Val())
			case "hash":
				for field, value := range c.HGetAll(ctx, key).Val() {
					values = append(values, field, value)
				}
			}
			if slices.ContainsFunc(values, has) {
				keys = append(keys, key)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

// inFiles reports whether a file of a directory has the person.
func inFiles(dir string) (found bool) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() { // files of the index may go at any time
			raw, _ := os.ReadFile(path)
			found = found || bytes.Contains(bytes.ToLower(raw), []byte(trace))
		}
		return nil
	})
	return found
}

// TestPersonIsErasedEverywhere puts a person into every place, erases them, and then searches every byte.
func TestPersonIsErasedEverywhere(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "RCPT" && c.Arg == apptest.Gone && refuses.Load() {
			return testsmtp.Action{Reply: "550 5.1.1 <" + apptest.Gone + "> unknown"}
		}
		return testsmtp.Action{}
	}})
	hooks, log := apptest.Receive(t), &apptest.Log{}
	server := testredis.Server(t, "--rdbcompression", "no") // DUMP shows the bytes as they are
	db := apptest.Connect(t, server.URL())
	set := map[string]string{"redis.url": server.URL(), "redis.partitions": "2", "smtp": relay.URL(),
		"from": "Shop <shop@example.com>", "webhooks.allowPrivate": "true",
		"serviceUrl":          "https://mail.example.com",
		"relays.allowPrivate": "true", "outbox.keepContent": "1h"}
	a := apptest.RunLogging(t, set, slog.New(slog.NewTextHandler(log, nil)))
	ctx, client := t.Context(), api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(ctx, client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	_, err := api.CreateAccount.Do(ctx, client, api.Account{Account: "other", Email: "other@example.com",
		SMTP: &api.SMTPServer{Host: relay.Host(), Port: relay.Port()}})
	if err != nil {
		t.Fatal(err)
	}
	const bob = "bob@example.net"
	apptest.People(t, client, "weekly", apptest.Gone, bob)
	keep := func(c *api.Campaign) { c.KeepLog = true }
	apptest.Draft(t, client, "first", "weekly", keep)
	apptest.SendNow(t, client, "first")
	apptest.Reaches(t, client, "first", api.CampaignSent)
	_, err = api.CreateList.Do(ctx, client, api.List{Account: "other", ListID: "others", Name: "O",
		OptIn: "single"})
	if err == nil {
		_, err = api.CreateSubscriber.Do(ctx, client, api.SubscriberRequest{Account: "other", Email: apptest.Gone,
			Lists: []api.SubscriptionRequest{{ListID: "others"}}})
	}
	if err == nil { // an event names them
		_, err = api.LeaveList.Do(ctx, client, api.SubscriberAccount{Account: "other"}, apptest.Gone, "others")
	}
	if err != nil {
		t.Fatal(err)
	}
	other := apptest.SubmitTo(t, client, api.SubmitRequest{Account: "other"}, apptest.Gone)
	both := apptest.SubmitTo(t, client, api.SubmitRequest{}, apptest.Gone, bob)
	bobs := apptest.SubmitTo(t, client, api.SubmitRequest{}, bob)
	sent := apptest.SubmitTo(t, client, api.SubmitRequest{}, "ZWQJXKVGH@example.net")
	relay.Wait(6)
	later := time.Now().Add(time.Hour)
	live := apptest.SubmitTo(t, client, api.SubmitRequest{SendAt: &later}, apptest.Gone)
	refuses.Store(true)
	dead := apptest.SubmitTo(t, client, api.SubmitRequest{}, apptest.Gone)
	hooks.Wait(t, event.MessageFailed)
	apptest.Finds(t, client, "to:"+apptest.Gone, 5)
	apptest.Eventually(t, "the suppression has evidence", func() bool {
		found, err := api.CheckSuppression.Do(ctx, client, api.SuppressionCheck{Email: apptest.Gone})
		return err == nil && slices.ContainsFunc(found.Suppressions, func(s api.Suppression) bool {
			return s.Response != ""
		})
	})
	for _, kind := range []string{":message", ":suppression:bucket:", ":suppression:evidence:",
		":subscriber-page:",
		":subscriber-index:", ":ended:", ":envelope:", ":content:", ":status:", ":events", ":webhook:delivery:"} {
		if kind != ":message" && !slices.ContainsFunc(naming(t, db), func(key string) bool {
			return strings.Contains(key, kind)
		}) {
			t.Errorf("the person is in no key like %s", kind)
		}
	}
	if m, err := api.GetLoggedMessage.Do(ctx, client, sent.QueueID); err != nil || m.ContentUntil == nil {
		t.Errorf("the content of what was sent is kept until %v, %v", m.ContentUntil, err)
	}
	if !inFiles(filepath.Join(set["data"], "documents")) {
		t.Error("the person is in no file of the index")
	}

	data, err := api.ExportPerson.Do(ctx, client, api.ErasureRequest{Email: apptest.Gone, Account: "default"})
	if err != nil || len(data.Subscribers) != 1 || len(data.Campaigns) != 1 || len(data.Messages) != 4 ||
		len(data.Suppressions) != 1 || len(data.Deliveries) == 0 || len(data.Subscribers[0].Consents) != 1 {
		t.Errorf("exported %+v, %v", data, err)
	}

	receipt := apptest.Erased(t, client, "default")
	got := receipt.Places
	if got.Events == 0 || got.Deliveries == 0 || receipt.Ended == nil || len(receipt.Remaining) == 0 {
		t.Errorf("receipt %+v", receipt)
	}
	got.Events, got.Deliveries = 0, 0
	if want := (api.ErasurePlaces{Subscribers: 1, Lists: 1, Campaigns: 1, Outbox: 1, DeadLetters: 1, Messages: 2,
		Documents: 4, Suppressions: 1}); got != want {
		t.Errorf("receipt %+v, want %+v", got, want)
	}
	data, err = api.ExportPerson.Do(ctx, client, api.ErasureRequest{Email: apptest.Gone})
	if err != nil || len(data.Messages) != 1 || data.Messages[0].QueueID != other.QueueID ||
		len(data.Subscribers) != 1 || data.Subscribers[0].Account != "other" {
		t.Errorf("of the other account: %+v, %v", data, err)
	}
	if receipt = apptest.Erased(t, client, ""); receipt.Places.Subscribers != 1 || receipt.Places.Messages != 1 {
		t.Errorf("all accounts: %+v", receipt.Places)
	}

	nowhere := func(when string) {
		t.Helper()
		if left := naming(t, db); len(left) > 0 {
			t.Errorf("%s: Redis has the person in %v", when, left)
		}
		if inFiles(filepath.Join(set["data"], "documents")) {
			t.Errorf("%s: a file of the index has the person", when)
		}
		for line := range strings.Lines(log.String()) {
			if strings.Contains(strings.ToLower(line), trace) {
				t.Errorf("%s: logged %s", when, line)
			}
		}
	}
	nowhere("after the erasure")
	for _, id := range []string{sent.QueueID, live.QueueID, dead.QueueID, other.QueueID} {
		if _, err := api.GetLoggedMessage.Do(ctx, client, id); apptest.FailureCode(err) == "" {
			t.Errorf("message %s is still there", id)
		}
	}
	for _, id := range []string{both.QueueID, bobs.QueueID} {
		if m, err := api.GetLoggedMessage.Do(ctx, client, id); err != nil || !slices.Contains(m.Envelope.To, bob) {
			t.Errorf("message of another person: %+v, %v", m.Envelope, err)
		}
	}
	apptest.Finds(t, client, "to:"+bob, 2)
	if _, err := api.GetSubscriber.Do(ctx, client, api.SubscriberAccount{}, bob); err != nil {
		t.Errorf("another subscriber: %v", err)
	}

	refuses.Store(false)
	isNotMailed(t, a.URL(), client, relay, bob)
	apptest.Eventually(t, "the index has what was sent to the other one", func() bool {
		return len(naming(t, db)) == 0
	})
	nowhere("after what came later")
}

// isNotMailed tries all ways to mail the erased person. The other one is mailed.
func isNotMailed(t *testing.T, url string, client *api.Client, relay *testsmtp.Server, bob string) {
	t.Helper()
	ctx, before := t.Context(), apptest.Copies(relay)
	for _, account := range []string{"", "other"} {
		answer := apptest.SubmitTo(t, client, api.SubmitRequest{Account: account}, apptest.Gone)
		if answer.Skipped == nil || answer.Skipped.Reason != "erased" {
			t.Errorf("submitted to account %q: %+v", account, answer)
		}
	}
	apptest.SubmitTo(t, client, api.SubmitRequest{}, bob, apptest.Gone)
	done, err := api.ImportSubscribers.Do(ctx, client,
		strings.NewReader("email\n"+apptest.Gone+"\nnew@example.net\n"),
		api.SubscriberImportOptions{ListID: []string{"weekly"}, State: "subscribed", Consent: "test"})
	if err != nil || done.Bad != 1 || done.Added != 1 || len(done.Errors) != 1 ||
		!strings.Contains(done.Errors[0].Reason, "erased") {
		t.Errorf("imported %+v, %v", done, err)
	}
	_, err = api.CreateSubscriber.Do(ctx, client, api.SubscriberRequest{Email: apptest.Gone})
	if apptest.FailureCode(err) != "PersonErased" {
		t.Errorf("a subscriber: %v", err)
	}
	if _, err := api.UpdateList.Do(ctx, client, api.ListPatch{Public: new(true)}, "weekly"); err != nil {
		t.Fatal(err)
	}
	form, err := http.Post(url+"/subscribers", "application/json",
		strings.NewReader(`{"listId":"weekly","email":"`+apptest.Gone+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = form.Body.Close()
	if form.StatusCode != http.StatusOK {
		t.Errorf("the form: %d", form.StatusCode)
	}
	apptest.Draft(t, client, "second", "weekly", nil)
	apptest.SendNow(t, client, "second")
	apptest.Reaches(t, client, "second", api.CampaignSent)
	apptest.Eventually(t, "the others are mailed", func() bool {
		now := apptest.Copies(relay)
		return now[bob] == before[bob]+2 && now["new@example.net"] == 1
	})
	if now := apptest.Copies(relay); now[apptest.Gone] != before[apptest.Gone] {
		t.Errorf("the erased person got %d mails", now[apptest.Gone]-before[apptest.Gone])
	}
}

// TestTheReceiptHasEveryPlaceThatIsCounted: what an erasure counts and the receipt does not know is lost.
func TestTheReceiptHasEveryPlaceThatIsCounted(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[api.ErasurePlaces]()) {
		known[field.Tag.Get("json")] = true
	}
	counts, found := regexp.MustCompile(`\btally\("(\w+)"|\bPlace\w+ += "(\w+)"`), map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range counts.FindAllStringSubmatch(string(source), -1) {
			found[m[1]+m[2]] = true
		}
		return err
	})
	if diff := cmp.Diff(found, known); diff != "" || err != nil {
		t.Errorf("counted (-) and in the receipt (+), %v:\n%s", err, diff)
	}
}
