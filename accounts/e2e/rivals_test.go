package e2e_test

import (
	"errors"
	"net"
	"net/http"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// rivals are two accounts that distrust each other: a, b, each with a gateway, and the DKIM key of b.example.
// Account c may send as one address at b.example.
type rivals struct {
	*app.App
	relays         map[string]*testsmtp.Server // by account
	admin, a, b, c *api.Client
	tokenA         string
}

func startRivals(t *testing.T, set map[string]string) *rivals {
	t.Helper()
	set["smtpd.listen"] = "127.0.0.1:0"
	r := &rivals{App: apptest.Run(t, set), relays: map[string]*testsmtp.Server{}}
	r.admin = api.NewClient(r.URL(), r.Token(), nil)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	clients := map[string]*api.Client{}
	for _, id := range []string{"a", "b", "c"} {
		relay := testsmtp.Start(t, testsmtp.Options{})
		r.relays[id] = relay
		must(api.CreateGateway.Do(t.Context(), r.admin, api.Gateway{Gateway: "g" + id, Host: relay.Host(),
			Port: relay.Port()}))
		account := api.Account{Account: id, Email: id + "@" + id + ".example",
			Gateways: []api.Route{{Gateway: "g" + id}}}
		if id == "c" {
			account.Senders = []api.SenderRight{{Sender: "Guest@B.example"}}
		}
		must(api.CreateAccount.Do(t.Context(), r.admin, account))
		token, err := api.CreateToken.Do(t.Context(), r.admin, api.TokenRequest{Account: id, Description: id})
		must(nil, err)
		clients[id] = api.NewClient(r.URL(), token.Token, nil)
		if id == "a" {
			r.tokenA = token.Token
		}
	}
	r.a, r.b, r.c = clients["a"], clients["b"], clients["c"]
	must(api.PutDomainKey.Do(t.Context(), r.admin, api.NewDomainKey{
		DKIM: api.DKIM{Domain: "b.example", Selector: "s1", PrivateKey: apptest.DKIMKey(t)}}, "b.example"))
	return r
}

// mailFrom is a message to somebody.
func mailFrom(from, to string) api.SubmitRequest {
	req := api.SubmitRequest{To: api.Addresses{{Address: to}}, Subject: "Hello", Text: "Hello"}
	if from != "" {
		req.From = &api.Address{Address: from}
	}
	return req
}

// rawMail is a raw message to somebody, with more in its header.
func rawMail(header ...string) api.SubmitRequest {
	lines := append(header, "To: ann@example.net", "Subject: Hello", "", "Hello", "")
	return api.SubmitRequest{Raw: []byte(strings.Join(lines, "\r\n"))}
}

// refused fails the test unless a call was refused with 403 and a code, naming a field.
func refused(t *testing.T, err error, code, field string) {
	t.Helper()
	var f *api.Failure
	if !errors.As(err, &f) || f.Problem.StatusCode != http.StatusForbidden || f.Problem.Code != code ||
		len(f.Problem.Fields) != 1 || f.Problem.Fields[0].Key != field {
		t.Errorf("%v, want 403 %s of %s", err, code, field)
	}
}

// silent fails the test if a relay got a message.
func (r *rivals) silent(t *testing.T) {
	t.Helper()
	for id, relay := range r.relays {
		if n := relay.Count(); n != 0 {
			t.Errorf("the relay of %s got %d messages", id, n)
		}
	}
}

// TestABoundTokenSubmitsAsItsAccountOnly covers every way to name a sender or a gateway over HTTP.
func TestABoundTokenSubmitsAsItsAccountOnly(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{"serviceUrl": "https://mail.example.com"})
	with := func(req api.SubmitRequest, change func(*api.SubmitRequest)) api.SubmitRequest {
		change(&req)
		return req
	}
	own := mailFrom("", "ann@example.net")
	const sender, gateway = "SenderNotAllowed", "GatewayNotAllowed"
	foreign := api.Address{Address: "ceo@b.example"}
	for name, row := range map[string]struct {
		req         api.SubmitRequest
		code, field string
	}{
		"From":             {mailFrom("ceo@b.example", "ann@example.net"), sender, "from"},
		"From, subdomain":  {mailFrom("ceo@x.a.example", "ann@example.net"), sender, "from"},
		"From, lookalike":  {mailFrom("ceo@xa.example", "ann@example.net"), sender, "from"},
		"raw From":         {rawMail("From: ceo@b.example"), sender, "from"},
		"raw, two authors": {rawMail("From: a@a.example, ceo@b.example", "Sender: a@a.example"), sender, "from"},
		"raw Sender":       {rawMail("From: a@a.example", "Sender: ceo@b.example"), sender, "headers.Sender"},
		"raw Resent-From": {rawMail("From: a@a.example", "Resent-From: ceo@b.example"), sender,
			"headers.Resent-From"},
		"raw Sender, unreadable": {rawMail("From: a@a.example", "Sender: <<ceo@b.example"), sender,
			"headers.Sender"},
		"raw with a gateway": {rawMail("From: a@a.example", "X-EE-Gateway: gb"), gateway, "gateway"},
		"header Sender": {with(own, func(r *api.SubmitRequest) {
			r.Headers = api.Headers{"Sender": {"ceo@b.example"}}
		}),
			sender, "headers.Sender"},
		"envelope": {with(own, func(r *api.SubmitRequest) {
			r.Envelope = &api.Envelope{From: "ceo@b.example", To: []string{"ann@example.net"}}
		}),
			sender, "envelope.from"},
		"gateway":         {with(own, func(r *api.SubmitRequest) { r.Gateway = "gb" }), gateway, "gateway"},
		"unknown gateway": {with(own, func(r *api.SubmitRequest) { r.Gateway = "gx" }), gateway, "gateway"},
		"dry run": {with(own, func(r *api.SubmitRequest) { r.DryRun, r.From = true, &foreign }),
			sender, "from"},
		"mail merge": {api.SubmitRequest{From: &foreign, Text: "Hello",
			MailMerge: []api.MailMergeEntry{{To: api.Address{Address: "ann@example.net"}}}}, sender, "from"},
	} {
		_, err := api.Submit.Do(t.Context(), r.a, row.req)
		t.Run(name, func(t *testing.T) { refused(t, err, row.code, row.field) })
	}
	r.campaignsRefused(t)
	r.silent(t)
	for _, req := range []api.SubmitRequest{own, mailFrom("News@A.Example", "ann@example.net"),
		with(own, func(r *api.SubmitRequest) { r.Gateway = "ga" })} {
		if _, err := api.Submit.Do(t.Context(), r.a, req); err != nil {
			t.Errorf("as itself: %v", err)
		}
	}
	r.relays["a"].Wait(3)
}

// TestABoundTokenSendsOverSMTPAsItsAccountOnly covers the header and MAIL FROM of the inlet.
func TestABoundTokenSendsOverSMTPAsItsAccountOnly(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{})
	host, _, _ := net.SplitHostPort(r.Addrs().SMTP)
	send := func(from string, req api.SubmitRequest) error {
		return smtp.SendMail(r.Addrs().SMTP, smtp.PlainAuth("", "a", r.tokenA, host), from,
			[]string{"ann@example.net"}, req.Raw)
	}
	for name, err := range map[string]error{
		"From":    send("a@a.example", rawMail("From: ceo@b.example")),
		"Sender":  send("a@a.example", rawMail("From: a@a.example", "Sender: ceo@b.example")),
		"MAIL":    send("ceo@b.example", rawMail("From: a@a.example")),
		"gateway": send("a@a.example", rawMail("From: a@a.example", "X-Postroom-Gateway: gb")),
	} {
		var refusal *textproto.Error
		if !errors.As(err, &refusal) || refusal.Code != 550 || !strings.HasPrefix(refusal.Msg, "5.7.1 ") ||
			!strings.Contains(refusal.Msg, `Account "a" may not`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.silent(t)
	if err := send("bounces@a.example", rawMail("From: a@a.example")); err != nil {
		t.Errorf("as itself: %v", err)
	}
	if err := send("", rawMail("From: a@a.example")); err != nil {
		t.Errorf("null sender: %v", err)
	}
	r.relays["a"].Wait(2)
}

// fails submits a message that fails at the relay, and returns its id once it is a dead letter.
func (r *rivals) fails(t *testing.T, client *api.Client, req api.SubmitRequest) string {
	t.Helper()
	answer, err := api.Submit.Do(t.Context(), client, req)
	if err != nil {
		t.Fatal(err)
	}
	if answer.QueueID == "" {
		t.Fatalf("not queued: %+v", answer)
	}
	return r.dead(t, answer.QueueID).QueueID
}

// TestABoundTokenReplaysAsItsAccountOnly covers replays and changes of messages.
func TestABoundTokenReplaysAsItsAccountOnly(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{})
	asAdmin := mailFrom("ceo@b.example", "dot-554+1@example.net")
	asAdmin.Account = "a"
	foreign := r.fails(t, r.admin, asAdmin)
	own := r.fails(t, r.a, mailFrom("", "dot-554+2@example.net"))
	gb, to := "gb", api.Emails{"ann@example.net"}
	replay := func(id string, c api.Corrections) error {
		_, err := api.ReplayDeadLetter.Do(t.Context(), r.a, c, id)
		return err
	}
	refused(t, replay(foreign, api.Corrections{To: to}), "SenderNotAllowed", "from")
	refused(t, replay(own, api.Corrections{Gateway: &gb, To: to}), "GatewayNotAllowed", "gateway")
	if err := replay(own, api.Corrections{Account: "b"}); err == nil {
		t.Error("replayed as another account")
	}
	all := func(c *api.Corrections) (api.ReplayAnswer, error) {
		return api.ReplayDeadLetters.Do(t.Context(), r.a, api.ReplayRequest{IDs: []string{foreign, own},
			Corrections: c})
	}
	_, err := all(&api.Corrections{Gateway: &gb})
	refused(t, err, "GatewayNotAllowed", "gateway")
	later := mailFrom("", "ann@example.net")
	later.SendAt = new(time.Now().Add(time.Hour))
	answer, err := api.Submit.Do(t.Context(), r.a, later)
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.PatchMessage.Do(t.Context(), r.a, api.OutboxPatch{Gateway: &gb}, answer.QueueID)
	refused(t, err, "GatewayNotAllowed", "gateway")
	r.silent(t)

	if got, err := all(nil); err != nil || got.Replayed != 1 || got.Skipped != 1 {
		t.Errorf("replay of both: %+v, %v", got, err)
	}
	if _, err := api.ReplayDeadLetter.Do(t.Context(), r.admin, api.Corrections{To: to, Gateway: &gb},
		foreign); err != nil {
		t.Errorf("an unbound token: %v", err)
	}
	r.relays["b"].Wait(1)
}

// TestADomainsKeySignsForItsOwnersOnly covers the key of a domain that is stored for the instance.
func TestADomainsKeySignsForItsOwnersOnly(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{})
	asA := mailFrom("ceo@b.example", "ann@example.net")
	asA.Account = "a"
	for _, row := range []struct {
		name, relay string
		client      *api.Client
		req         api.SubmitRequest
		signed      bool
	}{
		{"the owner", "b", r.b, mailFrom("", "ann@example.net"), true},
		{"the owner, of a merge", "b", r.b, api.SubmitRequest{Text: "Hello",
			MailMerge: []api.MailMergeEntry{{To: api.Address{Address: "ann@example.net"}}}}, true},
		{"one address of the domain", "c", r.c, mailFrom("guest@b.example", "ann@example.net"), false},
		{"an unbound token", "a", r.admin, asA, true},
	} {
		relay := r.relays[row.relay]
		n := relay.Count() + 1
		if _, err := api.Submit.Do(t.Context(), row.client, row.req); err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		if got := strings.Contains(string(relay.Wait(n)[n-1].Data), "d=b.example"); got != row.signed {
			t.Errorf("%s: signed %v", row.name, got)
		}
	}
}

// TestSendersAreEnforcedAsSet covers the settings senders.enforce and senders.own.
func TestSendersAreEnforcedAsSet(t *testing.T) {
	t.Parallel()
	foreign := mailFrom("ceo@b.example", "ann@example.net")
	off := startRivals(t, map[string]string{"senders.enforce": "off"})
	if _, err := api.Submit.Do(t.Context(), off.a, foreign); err != nil {
		t.Errorf("off: %v", err)
	}
	all := startRivals(t, map[string]string{"senders.enforce": "all", "senders.own": "address"})
	foreign.Account = "a"
	_, err := api.Submit.Do(t.Context(), all.admin, foreign)
	refused(t, err, "SenderNotAllowed", "from")
	_, err = api.Submit.Do(t.Context(), all.a, mailFrom("other@a.example", "ann@example.net"))
	refused(t, err, "SenderNotAllowed", "from")
	if _, err := api.Submit.Do(t.Context(), all.a, mailFrom("A@a.example", "ann@example.net")); err != nil {
		t.Errorf("its own address: %v", err)
	}
}

// TestAnAccountsSendersOverTheAPI covers what a bound token may do about its senders.
func TestAnAccountsSendersOverTheAPI(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{})
	ctx := t.Context()
	statuses := func(client *api.Client, id string) (all []string) {
		list, err := api.ListSenders.Do(ctx, client, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Senders {
			all = append(all, s.Sender+" "+s.Status)
		}
		return all
	}
	added, err := api.AddSender.Do(ctx, r.a, api.NewSender{Sender: "B.Example"}, "a")
	if err != nil || added.Status != api.SenderPending || added.DNS == nil ||
		added.DNS.Name != "_postroom.b.example" || !strings.HasPrefix(added.DNS.Value, "postroom-sender=") {
		t.Errorf("%+v, %v", added, err)
	}
	want := []string{"a@a.example own", "a.example own", "b.example pending"}
	if got := statuses(r.a, "a"); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	_, err = api.Submit.Do(ctx, r.a, mailFrom("ceo@b.example", "ann@example.net"))
	refused(t, err, "SenderNotAllowed", "from")
	if _, err := api.AddSender.Do(ctx, r.a, api.NewSender{Sender: "ceo@b.example"}, "a"); err == nil {
		t.Error("a bound token added an address")
	}
	for _, client := range []*api.Client{r.b, r.c} {
		if _, err := api.ListSenders.Do(ctx, client, "a"); err == nil {
			t.Error("another account sees the senders")
		}
		if _, err := api.AddSender.Do(ctx, client, api.NewSender{Sender: "b.example"}, "a"); err == nil {
			t.Error("another account adds a sender")
		}
		if _, err := api.RemoveSender.Do(ctx, client, "a", "b.example"); err == nil {
			t.Error("another account removes a sender")
		}
	}
	if got, err := api.AddSender.Do(ctx, r.admin, api.NewSender{Sender: "b.example"}, "a"); err != nil ||
		got.Status != api.SenderSet {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err = api.Submit.Do(ctx, r.a, mailFrom("ceo@b.example", "ann@example.net")); err != nil {
		t.Errorf("after it was set: %v", err)
	}
	if _, err := api.RemoveSender.Do(ctx, r.a, "a", "b.example"); err != nil {
		t.Error(err)
	}
	_, err = api.Submit.Do(ctx, r.a, mailFrom("ceo@b.example", "ann@example.net"))
	refused(t, err, "SenderNotAllowed", "from")
}

// TestALostSenderSendsNothingMore covers mail that was accepted before its account lost the sender.
func TestALostSenderSendsNothingMore(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{})
	ctx := t.Context()
	later := func(client *api.Client, req api.SubmitRequest) string {
		t.Helper()
		req.SendAt = new(time.Now().Add(time.Hour))
		answer, err := api.Submit.Do(ctx, client, req)
		if err != nil {
			t.Fatal(err)
		}
		return answer.QueueID
	}
	now := func(id string) {
		t.Helper()
		if _, err := api.RetryMessage.Do(ctx, r.admin, id); err != nil {
			t.Fatal(err)
		}
	}
	raw := rawMail("From: guest@b.example", "Sender: c@c.example")
	raw.Envelope = &api.Envelope{From: "c@c.example", To: []string{"ann@example.net"}}
	unbound := mailFrom("guest@b.example", "ann@example.net")
	unbound.Account = "c"
	own := later(r.c, mailFrom("", "ann@example.net"))
	trusted := later(r.admin, unbound)
	lost := []string{later(r.c, mailFrom("guest@b.example", "ann@example.net")), later(r.c, raw)}
	if _, err := api.RemoveSender.Do(ctx, r.admin, "c", "guest@b.example"); err != nil {
		t.Fatal(err)
	}
	failed := func(id string) {
		t.Helper()
		now(id)
		dead := r.dead(t, id)
		if e := dead.Progress.Error; e == nil || e.Code != "ENOSENDER" ||
			!strings.Contains(e.Message, "as guest@b.example") || !strings.Contains(e.Message, "account/c/senders") {
			t.Errorf("dead letter: %+v", e)
		}
	}
	for _, id := range lost {
		failed(id)
		failed(id) // a retry does not help
	}
	r.silent(t)
	now(own)
	now(trusted)
	r.relays["c"].Wait(2)
	if _, err := api.AddSender.Do(ctx, r.admin, api.NewSender{Sender: "guest@b.example"}, "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ReplayDeadLetter.Do(ctx, r.c, api.Corrections{}, lost[0]); err != nil {
		t.Error(err)
	}
	r.relays["c"].Wait(3)
	asAnother := api.Corrections{Account: "a"}
	if _, err := api.ReplayDeadLetter.Do(ctx, r.admin, asAnother, lost[1]); err != nil {
		t.Error(err)
	}
	r.relays["a"].Wait(1)
}

// dead waits until a message is a dead letter.
func (r *rivals) dead(t *testing.T, id string) api.DeadLetter {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		if dead, err := api.GetDeadLetter.Do(t.Context(), r.admin, id); err == nil {
			return dead
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-timeout:
			t.Fatal("the message did not fail")
		}
	}
}
