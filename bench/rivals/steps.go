package main

import (
	"context"
	"fmt"
	"net/http"
	"net/smtp"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// play makes steps: every other one against the other.
func (r *rival) play(ctx context.Context, g *game, steps int) error {
	for range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch n := r.dice.IntN(100); {
		case n < 50:
			r.own++
			err = r.step(ctx)
		case n < 97:
			r.hostile++
			err = r.attack(ctx, g.operations[r.dice.IntN(len(g.operations))])
		case n < 99:
			r.hostile++
			r.poses()
		default:
			r.hostile++
			err = r.bounces()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step does something with the account's objects.
func (r *rival) step(ctx context.Context) error {
	switch r.dice.IntN(8) {
	case 0, 1:
		return r.send(ctx)
	case 2:
		return r.submit(ctx, "", time.Hour)
	case 3:
		return r.cancel(ctx)
	case 4:
		return r.template(ctx)
	case 5:
		return r.suppress(ctx)
	case 6:
		return r.submit(ctx, sharedAddress(r.dice.IntN(shared)), 0)
	}
	_, err := r.call(ctx, http.MethodGet, []string{"/v1/outbox", "/v1/messages", "/v1/stats", "/v1/templates",
		"/v1/suppressions", "/v1/rates", "/v1/webhook-endpoints"}[r.dice.IntN(7)], "", nil)
	return err
}

// send submits an email that is due.
func (r *rival) send(ctx context.Context) error { return r.submit(ctx, "", 0) }

// submit submits an email to an address, or if empty, to one that only this account sends to.
func (r *rival) submit(ctx context.Context, to string, in time.Duration) error {
	r.mu.Lock()
	r.number++
	m := &mail{subject: fmt.Sprintf("%s number %d", r.secret, r.number), to: to, later: in > 0,
		submitted: time.Now()}
	r.bySubject[m.subject] = m // before the answer: the mail may arrive first
	isBarred := r.barred[to]
	template := ""
	if to == "" && in == 0 && r.dice.IntN(4) == 0 {
		template = some(r.templates, r.dice.IntN)
	}
	r.mu.Unlock()
	if to == "" {
		to = fmt.Sprintf("somebody%d@%s.test", r.number, r.secret)
	}
	what := fmt.Sprintf(`"text":"%s"`, r.secret)
	if template != "" {
		what = fmt.Sprintf(`"template":"%s"`, template)
	}
	body := fmt.Sprintf(`{"to":{"address":"%s"},"subject":"%s","metadata":{"order":"%s"},%s`, to, m.subject,
		r.secret,
		what)
	if in > 0 {
		body += fmt.Sprintf(`,"sendAt":"%s"`, time.Now().Add(in).UTC().Format(time.RFC3339))
	}
	var answer api.SubmitAnswer
	if _, err := r.call(ctx, http.MethodPost, "/v1/submit", body+"}", &answer); err != nil {
		return err
	}
	if answer.Idempotency == nil || answer.Idempotency.Status != "MISS" {
		r.broken.add(keys, fmt.Sprintf("%+v", answer.Idempotency))
	}
	if answer.NoneQueued() != isBarred {
		r.broken.add(opened,
			fmt.Sprintf("%s: %+v, barred %t", to, answer, isBarred))
	}
	if !answer.NoneQueued() {
		r.mu.Lock()
		m.id = answer.QueueID
		r.mails[m.id] = m
		r.mu.Unlock()
	}
	return nil
}

// cancel cancels an email that is due later.
func (r *rival) cancel(ctx context.Context) error {
	r.mu.Lock()
	var m *mail
	for _, one := range r.mails {
		if one.later && !one.cancelled {
			m = one
			break
		}
	}
	r.mu.Unlock()
	if m == nil {
		return nil
	}
	var answer api.Deleted
	if _, err := r.call(ctx, http.MethodDelete, "/v1/outbox/"+m.id, "", &answer); err != nil {
		return err
	}
	if !answer.Deleted {
		r.broken.add(lost, m.id)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m.cancelled = true
	return nil
}

// template makes, changes or deletes a template.
func (r *rival) template(ctx context.Context) error {
	r.mu.Lock()
	id, n := some(r.templates, r.dice.IntN), len(r.templates)
	r.mu.Unlock()
	text := fmt.Sprintf("%s %d", r.secret, r.dice.IntN(1_000_000))
	content := fmt.Sprintf(`"content":{"text":"%s"}`, text)
	if id == "" || n < 10 {
		var made struct{ ID string }
		if _, err := r.call(ctx, http.MethodPost, "/v1/templates/template",
			fmt.Sprintf(`{"name":"%s",%s}`, r.secret, content), &made); err != nil {
			return err
		}
		id = made.ID
	} else if r.dice.IntN(3) == 0 {
		r.mu.Lock()
		delete(r.templates, id)
		r.mu.Unlock()
		var gone api.Deleted
		_, err := r.call(ctx, http.MethodDelete, "/v1/templates/template/"+id, "", &gone)
		return err
	} else if _, err := r.call(ctx, http.MethodPut, "/v1/templates/template/"+id, "{"+content+"}",
		&struct{}{}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.templates[id] = text
	return nil
}

// suppress bars or releases a shared address, for this account. One that an email is under way to stays as it
// is: that email may be stopped or not.
func (r *rival) suppress(ctx context.Context) error {
	who := sharedAddress(r.dice.IntN(shared))
	r.mu.Lock()
	isBarred, underWay := r.barred[who], false
	for _, m := range r.mails {
		underWay = underWay || m.to == who && m.arrived == 0
	}
	r.mu.Unlock()
	if underWay {
		return nil
	}
	var err error
	if isBarred {
		var gone api.Deleted
		_, err = r.call(ctx, http.MethodDelete, "/v1/suppressions?email="+url.QueryEscape(who), "", &gone)
	} else {
		_, err = r.call(ctx, http.MethodPost, "/v1/suppressions", fmt.Sprintf(`{"email":"%s"}`, who), &struct{}{})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.barred[who] = !isBarred
	return err
}

// attack calls an operation about the other account's objects.
func (r *rival) attack(ctx context.Context, o operation) error {
	path, body, ok := o.about(r)
	if !ok {
		return nil
	}
	if o.method == http.MethodGet {
		body = ""
	}
	status, err := r.call(ctx, o.method, path, body, nil)
	r.answers[status]++
	if err == nil && status < 300 && posing[o.id] {
		r.broken.add(posed, fmt.Sprintf("%s %s %s: %d", o.method, path, body, status))
	}
	return err
}

// poses submits mail as the other, over SMTP with its own token.
func (r *rival) poses() {
	froms := [][2]string{{r.other.address(), r.other.address()}, {r.address(), r.other.address()},
		{r.other.address(), r.address()}}
	from := froms[r.dice.IntN(len(froms))]
	if r.mailOverSMTP(from[0], from[1]) == nil {
		r.broken.add(posed, fmt.Sprint("SMTP ", from))
	}
}

// mailOverSMTP submits an email with a sender in its envelope and one in its header.
func (r *rival) mailOverSMTP(envelope, from string) error {
	subject := r.secret + " over SMTP"
	r.mu.Lock()
	r.bySubject[subject] = &mail{subject: subject, later: true}
	r.mu.Unlock()
	return smtp.SendMail(r.app.Addrs().SMTP, smtp.PlainAuth("", r.name, r.token, "127.0.0.1"), envelope,
		[]string{"a@neutral.test"}, []byte("From: "+from+"\r\nTo: a@neutral.test\r\nSubject: "+subject+
			"\r\n\r\nx\r\n"))
}

// bounces returns an email that says that a recipient of the other does not exist. It has a return path of
// the own account, which is all that an account can know.
func (r *rival) bounces() error {
	r.mu.Lock()
	to := r.returns
	r.mu.Unlock()
	if to == "" || !strings.HasSuffix(to, "@returns.test") {
		return nil
	}
	who := sharedAddress(r.dice.IntN(shared))
	report := strings.ReplaceAll(fmt.Sprintf(`From: MAILER-DAEMON@shared.test
To: %s
Subject: Undelivered
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

%s does not exist
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; shared.test

Final-Recipient: rfc822; %s
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 no such user

--b--
`, to, who, who), "\n", "\r\n")
	err := smtp.SendMail(r.app.Addrs().Bounce, nil, "", []string{to}, []byte(report))
	if err == nil {
		r.answers[250]++
	}
	return err
}
