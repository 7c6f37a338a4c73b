package audience

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/text/language"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/signedtoken"
)

const (
	askedWithin   = 10 * time.Minute // a repeated request within this sends no second email
	welcomeWithin = time.Hour        // in which a repeated confirmation sends a welcome that a crash kept back
	linkLists     = 10               // lists of one link: their ids fit its token
	day           = 24 * time.Hour
)

var askScript = redisdb.NewScript[askArgs, askAnswer]("audience/ask", redisdb.Source(lua, "lua/ask.lua"))

type askArgs struct {
	Now    int64
	Lists  string
	Within int
	Most   int
	Day    int
}

type askAnswer struct {
	Word  string
	Queue string
	Wait  int
}

// askedKey is the hash of the emails that asked an address within a day. Its name does not show the address.
func askedKey(account, address string) string {
	field := account + " " + address
	sum := sha256.Sum256([]byte(field))
	return redisdb.Key(redisdb.PartitionFor(field, shards), "subscriber-asked",
		base64.RawURLEncoding.EncodeToString(sum[:18]))
}

// ask sends an email with the link that confirms subscriptions, and returns its queue id. If one was sent
// less than within ago, it returns that.
func (c *Confirmations) ask(ctx context.Context, account string, ordinal uint32, r *record, lists []*List,
	within time.Duration) (queueID string, err error) {
	s, key := c.Subscribers, askedKey(account, folded(r.email))
	ids := make([]string, len(lists))
	for i, list := range lists {
		ids[i] = list.ListID
	}
	asked, now := strings.Join(ids, ","), s.now()
	answer, err := askScript.RunReplicated(ctx, s.db, []string{key}, askArgs{Now: now.Unix(), Lists: asked,
		Within: int(within.Seconds()), Most: c.perDay, Day: int(day.Seconds())})
	switch {
	case err != nil:
		err = redisdb.Failed(err, "count the mails that ask subscriber %s of account %s", idOf(ordinal), account)
	case answer.Word == "REPEATED":
		c.metrics.mails.WithLabelValues("repeated").Inc()
		return answer.Queue, nil
	case answer.Word == "MANY":
		c.metrics.mails.WithLabelValues("limited").Inc()
		many := fault.New(fault.Limited, "TooManyConfirmations",
			"Subscriber %s got %d confirmation emails in a day, the limit of newsletter.confirmPerDay. "+
				"Try again later", idOf(ordinal),
			c.perDay)
		many.RetryAfter = time.Duration(answer.Wait) * time.Second
		return "", many
	default:
		queueID, err = c.sendAsk(ctx, account, ordinal, r, lists, asked)
	}
	if err != nil {
		c.metrics.mails.WithLabelValues("failed").Inc()
		if answer.Word != "" {
			err = errors.Join(err, c.unask(ctx, key, asked))
		}
		return "", err
	}
	c.metrics.mails.WithLabelValues("asked").Inc()
	// a failure costs the repetition its answer, no more
	_ = s.db.Client().HSet(ctx, key, asked, fmt.Sprintf("%d %s", now.Unix(), queueID)).Err()
	return queueID, nil
}

// forget lets the next request by someone who confirmed and unsubscribed send an email immediately. The day's
// emails stay counted. A failure costs ten minutes, no more.
func (c *Confirmations) forget(ctx context.Context, key string) {
	client := c.Subscribers.db.Client()
	fields, err := client.HKeys(ctx, key).Result()
	asked := slices.DeleteFunc(fields, func(field string) bool { return field == "began" || field == "sent" })
	if err == nil && len(asked) > 0 {
		_ = client.HDel(ctx, key, asked...).Err()
	}
}

// unask undoes the counts of an email that was not sent.
func (c *Confirmations) unask(ctx context.Context, key, asked string) error {
	pipe := c.Subscribers.db.Client().Pipeline()
	pipe.HIncrBy(ctx, key, "sent", -1)
	pipe.HDel(ctx, key, asked)
	if _, err := pipe.Exec(ctx); err != nil {
		return redisdb.Failed(err, "undo the count of an email that wasn't sent")
	}
	return nil
}

// sendAsk submits an email that asks. It has no listId: who unsubscribed from the list may come back by it.
func (c *Confirmations) sendAsk(ctx context.Context, account string, ordinal uint32, r *record, lists []*List,
	ids string) (queueID string, err error) {
	base, err := c.base()
	if err != nil {
		return "", err
	}
	at, err := ulid.New(ulid.Timestamp(c.Subscribers.now()), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make a link: %w", err)
	}
	token, err := c.Tokens.Sign(signedtoken.Confirm, signedtoken.Token{Account: account, MessageID: at.String(),
		Recipient: signedtoken.Whole, List: ids, Address: r.email})
	if err != nil {
		return "", err
	}
	about, err := c.params(ctx, account, ordinal, r, lists)
	if err != nil {
		return "", err
	}
	about["confirmUrl"] = base + "/subscribers/confirm?t=" + url.QueryEscape(token)
	content := builtInAsk(r.locale)
	for _, list := range lists {
		if list.Confirmation != nil {
			content = *list.Confirmation
			break
		}
	}
	return c.submit(ctx, mailTo(account, r, content), about)
}

// welcome sends the emails that follow subscriptions. Their keys make each go out once. A failure is logged:
// the subscription stands.
func (c *Confirmations) welcome(ctx context.Context, account string, ordinal uint32, r *record,
	lists []*List) {
	s := c.Subscribers
	for _, list := range lists {
		sub := r.on(list.Number)
		if list.Welcome == nil || sub == nil || s.now().Sub(timeOf(sub.since)) > welcomeWithin {
			continue
		}
		about, err := c.params(ctx, account, ordinal, r, []*List{list})
		if err == nil {
			mail := mailTo(account, r, *list.Welcome)
			mail.IdempotencyKey = fmt.Sprintf("welcome %d %s %d", list.Number, idOf(ordinal), sub.since)
			if _, none := c.base(); none == nil {
				mail.ListID = list.ListID // its headers need links
			}
			_, err = c.submit(ctx, mail, about)
		}
		if err != nil {
			c.metrics.mails.WithLabelValues("failed").Inc()
			s.log.ErrorContext(ctx, "a welcome was not sent", "subscriber", idOf(ordinal), "account", account, "list",
				list.ListID, "error", err)
			continue
		}
		c.metrics.mails.WithLabelValues("welcome").Inc()
	}
}

// mailTo returns an email of an account to a subscriber. Nothing in it is tracked.
func mailTo(account string, r *record, content api.ListMail) api.SubmitRequest {
	return api.SubmitRequest{Account: account, To: api.Addresses{{Address: r.email}}, Template: content.Template,
		Subject: content.Subject, HTML: content.HTML, Text: content.Text, Lane: api.Transactional,
		Headers: api.Headers{"Auto-Submitted": {"auto-generated"}}, // RFC 3834: no replies of absent people
		Locale:  r.locale, TZ: r.tz, TrackOpens: new(false), TrackClicks: new(false)}
}

func (c *Confirmations) submit(ctx context.Context, mail api.SubmitRequest, about map[string]any) (
	queueID string, err error) {
	params, err := json.Marshal(about)
	if err != nil {
		return "", fmt.Errorf("the params of a mail to a subscriber: %w", err)
	}
	mail.Render = &api.Render{Params: params}
	answer, err := c.Submit(ctx, mail)
	if err == nil && answer.NoneQueued() {
		err = fault.New(fault.Unprocessable, "RecipientSuppressed", "The subscriber is suppressed: %s",
			answer.Skipped.Reason)
	}
	return answer.QueueID, err
}

// params returns what templates of mails to a subscriber see.
func (c *Confirmations) params(ctx context.Context, account string, ordinal uint32, r *record,
	lists []*List) (map[string]any, error) {
	type listParams struct {
		ListID      string `json:"listId"`
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	all := make([]listParams, len(lists))
	for i, list := range lists {
		all[i] = listParams{list.ListID, list.Name, list.Description}
	}
	name, err := c.knownName(ctx, account, r, lists)
	if err != nil {
		return nil, err
	}
	attributes := json.RawMessage("{}")
	if len(r.attributes) > 0 {
		attributes = r.attributes
	}
	return map[string]any{"list": all[0], "lists": all, "names": joinedNames(lists),
		"subscriber": map[string]any{
			"id": idOf(ordinal), "email": r.email, "name": name, "locale": r.locale, "tz": r.tz,
			"attributes": attributes}}, nil
}

// knownName returns a subscriber's name, or "" while it comes from a form only: otherwise anonymous clients
// could have Postroom send any text to any address.
func (c *Confirmations) knownName(ctx context.Context, account string, r *record, lists []*List) (string,
	error) {
	for _, list := range lists {
		sub := r.on(list.Number)
		if sub == nil {
			continue
		}
		texts, err := c.Subscribers.words.read(ctx, account, []uint32{sub.source})
		if err != nil || texts[sub.source] == SourceForm {
			return "", err
		}
	}
	return r.name, nil
}

// askWords are a language's texts for the email that asks.
type askWords struct{ subject, text, link, ignore string }

// askIn has the texts by language, for the same languages as the public pages. The first is the default.
var askIn = []struct {
	language string
	words    askWords
}{
	{"en", askWords{"Please confirm: {{params.names}}", "This address was entered to get mail of: {{params.names}}.",
		"To confirm, follow this link and press the button:",
		"If that was not you, do nothing. You will get no other mail."}},
	{"de", askWords{"Bitte bestätigen: {{params.names}}",
		"Diese Adresse wurde eingetragen, um E-Mails zu erhalten: {{params.names}}.",
		"Zum Bestätigen öffnen Sie diesen Link und drücken die Schaltfläche:",
		"Wenn Sie das nicht waren, brauchen Sie nichts zu tun. Sie erhalten keine weitere E-Mail."}},
	{"fr", askWords{"Veuillez confirmer : {{params.names}}",
		"Cette adresse a été inscrite pour recevoir des courriels : {{params.names}}.",
		"Pour confirmer, suivez ce lien et appuyez sur le bouton :",
		"Si ce n’était pas vous, ne faites rien. Vous ne recevrez aucun autre courriel."}},
}

// AskLanguages returns the languages that Postroom asks in.
func AskLanguages() (all []string) {
	for _, l := range askIn {
		all = append(all, l.language)
	}
	return all
}

var askMatcher = func() language.Matcher {
	tags := make([]language.Tag, len(askIn))
	for i, l := range askIn {
		tags[i] = language.Make(l.language)
	}
	return language.NewMatcher(tags)
}()

// builtInAsk returns the email that asks, for lists without their own.
func builtInAsk(locale string) api.ListMail {
	_, i := language.MatchStrings(askMatcher, locale)
	w := askIn[i].words
	return api.ListMail{
		Subject: w.subject,
		Text: w.text + "\n\n" + w.link + "\n\n{{{confirmUrl}}}\n\n" + w.ignore +
			"\n\n{{account.name}}\n",
		HTML: `<html lang="` + askIn[i].language + `"><body><p>` + w.text + "</p><p>" + w.link +
			`</p><p><a href="{{confirmUrl}}">{{confirmUrl}}</a></p><p>` + w.ignore +
			"</p><p>{{account.name}}</p></body></html>",
	}
}
