package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

// rival is an account, what it should have, and what it saw of the other.
type rival struct {
	name, secret string // the secret is a word in all that it stores
	token        string
	endpoint     string // id of its webhook endpoint
	other        *rival
	app          *app.App
	admin        *api.Client
	dice         *rand.Rand
	http         *http.Client
	relay        *testsmtp.Server
	receiver     *httptest.Server
	own, hostile int
	answers      map[int]int // to steps against the other, by status
	broken       *tally

	mu        sync.Mutex
	number    int
	mails     map[string]*mail // by queueId
	bySubject map[string]*mail
	templates map[string]string // text by id
	barred    map[string]bool   // shared addresses that it suppressed
	returns   string            // a return path from its own mail, to an address that only it sends to
	took      []time.Duration   // from submit to relay
}

// What may cross the wall in a game.
const (
	leaks        = "leaks of the other's word"
	foreignMail  = "mails at its relay that it did not hand in"
	foreignEvent = "webhooks of another account"
	posed        = "sent as the other"
	crashed      = "answers of 500 and above"
	keys         = "idempotency keys that the other used up"
	opened       = "recipients whom the other blocked or released"
	lost         = "mails that never arrived, or were gone"
)

// mail is what should become of a message.
type mail struct {
	id, subject string
	to          string
	later       bool // it is due after the game
	cancelled   bool
	submitted   time.Time
	arrived     int // times at the relay
}

func newRival(name string, seed uint64, a *app.App) *rival {
	return &rival{name: name, secret: "secretof" + name, app: a,
		dice: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // dice
		http: &http.Client{Timeout: time.Minute}, broken: newTally(leaks, foreignMail,
			foreignEvent, posed, crashed, keys, opened, lost), answers: map[int]int{},
		mails: map[string]*mail{}, bySubject: map[string]*mail{}, templates: map[string]string{},
		barred: map[string]bool{}}
}

func (r *rival) domain() string  { return r.name + ".example" }
func (r *rival) address() string { return "mail@" + r.domain() }

// The ids of a list, a campaign and a category of digests that it keeps.
func (r *rival) list() string     { return "list-" + r.name }
func (r *rival) campaign() string { return "campaign-" + r.name }
func (r *rival) category() string { return "category-" + r.name }

// settle makes the account with its relay, token and endpoint.
func (r *rival) settle(ctx context.Context, g *game) error {
	var err error
	r.relay, err = testsmtp.New(testsmtp.Options{Discard: true, Respond: r.take})
	if err != nil {
		return err
	}
	g.OnClose(r.relay.Close)
	r.receiver = httptest.NewServer(http.HandlerFunc(r.event))
	g.OnClose(r.receiver.Close)
	r.admin = api.NewClient(g.app.URL(), g.app.Token(), nil)
	_, err = api.CreateGateway.Do(ctx, r.admin, api.Gateway{Gateway: "gate-" + r.name, Name: r.secret,
		Host: r.relay.Host(), Port: r.relay.Port()})
	if err != nil {
		return err
	}
	_, err = api.CreateAccount.Do(ctx, r.admin, api.Account{Account: r.name, Name: r.secret, Email: r.address(),
		Gateways: []api.Route{{Gateway: "gate-" + r.name}}})
	if err != nil {
		return err
	}
	token, err := api.CreateToken.Do(ctx, r.admin, api.TokenRequest{Account: r.name, Description: r.secret})
	if err != nil {
		return err
	}
	r.token = token.Token
	made, err := api.CreateEndpoint.Do(ctx, r.admin, api.EndpointRequest{URL: r.receiver.URL + "/" + r.secret,
		Description: r.secret, Accounts: []string{r.name}})
	if err != nil {
		return err
	}
	r.endpoint = made.ID
	for path, body := range map[string]string{
		"/v1/lists": `{"listId":"` + r.list() + `","optIn":"single","name":"` + r.secret + `"}`,
		"/v1/campaigns": `{"campaign":"` + r.campaign() + `","subject":"` + r.secret + `","name":"` + r.secret +
			`","text":"{{rcpt.unsubscribeUrl}}"}`,
		"/v1/digests/kinds": `{"category":"` + r.category() + `","title":{"en":"` + r.secret + `"}}`,
	} {
		if _, err := r.call(ctx, http.MethodPost, path, body, &struct{}{}); err != nil {
			return err
		}
	}
	// what is refused when it poses as the other is taken of itself
	if err := r.mailOverSMTP(r.address(), r.address()); err != nil {
		return fmt.Errorf("%s over SMTP as itself: %w", r.name, err)
	}
	return nil
}

// take is the relay: it gets mail of its account only.
func (r *rival) take(c testsmtp.Command) testsmtp.Action {
	if c.Verb != "DOT" {
		return testsmtp.Action{}
	}
	now, text := time.Now(), string(c.Data)
	r.sees("a mail at its relay", text)
	_, subject, _ := strings.Cut(text, "Subject: ")
	subject, _, _ = strings.Cut(subject, "\r\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	if !strings.HasSuffix(c.To[0], sharedDomain) {
		r.returns = c.From
	}
	m := r.bySubject[subject]
	if m == nil {
		r.broken.add(foreignMail, subject)
		return testsmtp.Action{}
	}
	if m.arrived++; m.arrived == 1 && !m.later {
		r.took = append(r.took, now.Sub(m.submitted))
	}
	return testsmtp.Action{}
}

// event is the webhook endpoint: it gets events of its account only.
func (r *rival) event(_ http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.sees("a webhook", string(body))
	var e struct{ Account string }
	if json.Unmarshal(body, &e) == nil && e.Account != "" && e.Account != r.name {
		r.broken.add(foreignEvent, string(body))
	}
}

// sees checks something that came to the account for the word of the other.
func (r *rival) sees(where, text string) {
	if strings.Contains(text, r.other.secret) {
		r.broken.add(leaks, where+": "+text[:min(len(text), 400)])
	}
}

// call makes a request with the token of the account, and reads the answer into out, if that is not nil.
func (r *rival) call(ctx context.Context, method, path, body string, out any) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.app.URL()+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	if strings.Contains(path, "/import") {
		req.Header.Set("Content-Type", "text/csv")
	}
	if method == http.MethodPost && strings.HasPrefix(path, "/v1/submit") { // both use the same keys
		req.Header.Set("Idempotency-Key", fmt.Sprint("order-", r.number))
	}
	res, err := r.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	if r.other != nil {
		r.sees(method+" "+path, string(raw))
		r.sees(method+" "+path, fmt.Sprint(res.Header))
	}
	if res.StatusCode >= http.StatusInternalServerError {
		r.broken.add(crashed, fmt.Sprint(method, " ", path, " ", body, ": ", string(raw)))
	}
	if out == nil {
		return res.StatusCode, nil
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return res.StatusCode, fmt.Errorf("%s: %s %s %s: %d %s", r.name, method, path, body, res.StatusCode, raw)
	}
	return res.StatusCode, json.Unmarshal(raw, out)
}

// names returns what an attacker may know of the account: the names of its objects. Some are not known yet.
func (r *rival) names(pick func(int) int) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]string{"{account}": r.name, "{gateway}": "gate-" + r.name, "{from}": r.address(),
		"{sender}": r.domain(), "{domain}": r.domain(), "{endpoint}": r.endpoint, "{listId}": "news",
		"{queue}": "submit", "{version}": "1", "{deliveryId}": "1", "{name}": "postmark",
		"{list}": r.list(), "{campaign}": r.campaign(), "{category}": r.category(),
		"{shared}":   sharedAddress(pick(shared)),
		"{queueId}":  some(r.mails, pick),
		"{template}": some(r.templates, pick),
		"{token}":    "0000000000000000000000000000000000000000000000000000000000000000",
		"{later}":    time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	return names
}

// some returns a key of a map; empty: it has none.
func some[V any](m map[string]V, pick func(int) int) string {
	if len(m) == 0 {
		return ""
	}
	n := pick(min(len(m), 8))
	for key := range m {
		if n--; n < 0 {
			return key
		}
	}
	return ""
}

// shared is the number of addresses that both accounts mail.
const shared = 50

// sharedDomain is the domain of those addresses.
const sharedDomain = "@shared.test"

func sharedAddress(n int) string { return fmt.Sprintf("person%d%s", n, sharedDomain) }

// delivered waits until every email that is due has left.
func (r *rival) delivered(ctx context.Context) error {
	missing := ""
	err := rig.Until(ctx, 2*time.Minute, 50*time.Millisecond, func() (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range r.mails {
			if !m.later && !m.cancelled && m.arrived == 0 {
				missing = m.id
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil && ctx.Err() == nil {
		r.broken.add(lost, missing)
		return nil
	}
	return err
}

// delays returns the times from submit to relay since the last call.
func (r *rival) delays() rig.Quantiles {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := r.took
	r.took = nil
	return rig.QuantilesOf(took)
}

// tally counts what is wrong, by kind, with an example.
type tally struct {
	mu    sync.Mutex
	found map[string]*crossing
}

// crossing is a way in which the wall was crossed.
type crossing struct {
	what, example string
	count         int
}

// newTally returns a tally that lists these kinds even if none is found.
func newTally(kinds ...string) *tally {
	t := &tally{found: map[string]*crossing{}}
	for _, what := range kinds {
		t.found[what] = &crossing{what: what}
	}
	return t
}

func (t *tally) add(what, example string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.found[what]
	if c == nil {
		c = &crossing{what: what}
		t.found[what] = c
	}
	if c.count++; c.count == 1 {
		c.example = example
	}
}

// list returns all kinds.
func (t *tally) list() []crossing {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]crossing, 0, len(t.found))
	for _, c := range t.found {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b crossing) int { return strings.Compare(a.what, b.what) })
	return all
}
