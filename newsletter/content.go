package newsletter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/templates/render"
)

// shared returns what all mail of a campaign has. subject replaces the campaign's, unless it is empty. bound
// is stored.Bound.
func shared(in api.Campaign, subject string, bound bool) outbox.Shared {
	sh := outbox.Shared{
		Account: in.Account, Subject: cmp.Or(subject, in.Subject), PreviewText: in.PreviewText,
		Template: in.Template, HTML: in.HTML, Text: in.Text, Gateway: in.Gateway, Locale: in.Locale, TZ: in.TZ,
		Tags: in.Tags, TrackOpens: in.TrackOpens, TrackClicks: in.TrackClicks,
		Bound: bound,
	}
	if in.From != nil {
		from := message.Address(*in.From)
		sh.From = &from
	}
	for _, one := range in.ReplyTo {
		sh.ReplyTo = append(sh.ReplyTo, message.Address(one))
	}
	if len(in.Lists) > 0 {
		sh.ListID = in.Lists[0]
	}
	if r := in.Render; r != nil {
		sh.Format = r.Format
		if r.Missing != "" {
			strict := r.Missing == "error"
			sh.Strict = &strict
		}
	}
	return sh
}

// mail is what a campaign's mail is filled with, in addition to the person.
type mail struct {
	params    map[string]any
	fallbacks map[string]any
	about     map[string]any // the campaign
}

func newMail(in api.Campaign) mail {
	m := mail{params: map[string]any{}, fallbacks: map[string]any{},
		about: map[string]any{"id": in.Campaign, "name": in.Name, "tags": list(in.Tags)}}
	if in.Render != nil && len(in.Render.Params) > 0 {
		_ = decode(in.Render.Params, &m.params) // checked when it was stored
	}
	if len(in.Fallbacks) > 0 {
		_ = decode(in.Fallbacks, &m.fallbacks) // likewise
	}
	return m
}

// decode adds the members of an object to a map, and keeps all digits of numbers.
func decode(object []byte, into *map[string]any) error {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	return d.Decode(into)
}

// list is a list as decoded JSON has it.
func list(words []string) any {
	if words == nil {
		return nil
	}
	all := make([]any, len(words))
	for i, word := range words {
		all[i] = word
	}
	return all
}

// filled returns the params of the mail to a person.
func (m mail) filled(p audience.Person) (map[string]any, error) {
	attributes := make(map[string]any, len(m.fallbacks)+8)
	maps.Copy(attributes, m.fallbacks)
	if len(p.Attributes) > 0 {
		if err := decode(p.Attributes, &attributes); err != nil {
			return nil, err
		}
	}
	all := make(map[string]any, len(m.params)+2)
	maps.Copy(all, m.params)
	all["campaign"] = m.about
	person := map[string]any{"id": p.ID, "email": p.Email, "tags": list(p.Tags), "attributes": attributes}
	for name, value := range map[string]string{"name": p.Name, "locale": p.Locale, "tz": p.TZ} {
		person[name] = value
		if fallback, ok := m.fallbacks[name]; ok && value == "" {
			person[name] = fallback
		}
	}
	all["subscriber"] = person
	return all, nil
}

// standIn is the person that email is filled for if there is none.
var standIn = audience.Person{ID: "s0", Email: "reader@example.com", Name: "Reader"}

// sample returns the person for a preview: the named one, else the first of the lists, else a stand-in.
func (c *Campaigns) sample(ctx context.Context, in api.Campaign, subscriber string) (audience.Person, bool,
	error) {
	if subscriber != "" {
		p, err := c.Audience.Person(ctx, in.Account, subscriber, in.Lists)
		return p, err == nil, err
	}
	people, err := c.some(ctx, in, 1)
	if err != nil || len(people) == 0 {
		return standIn, false, err
	}
	return people[0], true, nil
}

// sampleStretches bounds how far a sample looks: at some 130,000 subscribers.
const sampleStretches = 64

// some returns a few people of a campaign.
func (c *Campaigns) some(ctx context.Context, in api.Campaign, most int) ([]audience.Person, error) {
	choice, err := c.choose(ctx, in.Campaign, selection(in))
	if err != nil {
		return nil, err
	}
	end, err := c.Audience.End(ctx, in.Account)
	if err != nil {
		return nil, err
	}
	var people []audience.Person
	for from, n := uint32(0), 0; from < end && len(people) < most && n < sampleStretches; n++ {
		found, next, err := c.Audience.People(ctx, choice, from, end, stretchPages)
		if err != nil {
			return nil, err
		}
		people, from = append(people, found...), next
	}
	return people[:min(len(people), most)], nil
}

// Preview returns the mail of a campaign as one person would get it. It sends nothing.
func (c *Campaigns) Preview(ctx context.Context, bound, id string, in api.CampaignSample) (
	api.CampaignPreview, error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignPreview{}, err
	}
	one.Bound = one.Bound || bound != ""
	return c.preview(ctx, one, in)
}

// Try returns the preview of a campaign that isn't stored. It returns the errors of Create for wrong fields.
func (c *Campaigns) Try(ctx context.Context, bound string, in api.Campaign, sample api.CampaignSample) (
	api.CampaignPreview, error) {
	in.Name = cmp.Or(in.Name, "Preview")
	in, err := completed(bound, in)
	if err == nil {
		err = c.check(ctx, in)
	}
	if err != nil {
		return api.CampaignPreview{}, err
	}
	return c.preview(ctx, &campaign{stored: stored{Campaign: in, Bound: bound != ""}, id: in.Campaign}, sample)
}

// preview writes the mail of a campaign for one person.
func (c *Campaigns) preview(ctx context.Context, one *campaign, in api.CampaignSample) (api.CampaignPreview,
	error) {
	none := api.CampaignPreview{}
	person, real, err := c.sample(ctx, one.Campaign, in.Subscriber)
	if err != nil {
		return none, err
	}
	shown, err := chosen(one.Campaign, in.Variant)
	if err != nil {
		return none, err
	}
	mailing, err := c.previewed(ctx, shown, one.Bound)
	if err != nil {
		return none, err
	}
	p := api.CampaignPreview{Missing: []string{}}
	if real {
		p.Subscriber = person.ID
	}
	words, composed, err := c.written(ctx, mailing, one, person)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Unprocessable {
		for _, field := range f.Fields {
			p.Missing = append(p.Missing, field.Message)
		}
		return p, nil
	}
	if err != nil {
		return none, err
	}
	p.Subject, p.PreviewText, p.HTML, p.Text, p.Size = words.Subject, words.PreviewText, words.HTML,
		words.Text, composed.Size()
	return p, nil
}

// previewed returns a mailing whose links lead nowhere.
func (c *Campaigns) previewed(ctx context.Context, in api.Campaign, bound bool) (*outbox.Mailing, error) {
	sh := shared(in, "", bound)
	sh.Preview = true
	return c.Outbox.Mailings.Mailing(ctx, sh)
}

// written returns the mail to a person, and the words in it.
func (c *Campaigns) written(ctx context.Context, mailing *outbox.Mailing, one *campaign,
	person audience.Person) (render.Mail, *message.Composed, error) {
	m, err := c.filling(ctx, one.Campaign)
	if err != nil {
		return render.Mail{}, nil, err
	}
	params, err := m.filled(person)
	if err != nil {
		return render.Mail{}, nil, err
	}
	list := person.ListID
	if list == "" && len(one.Lists) > 0 {
		list = one.Lists[0]
	}
	composed, words, err := mailing.Write(ctx, outbox.Addressee{
		ID: c.messageID(one.Number, max(1, len(one.Runs)), person.Ordinal, c.opts.Now()),
		To: message.Address{Name: person.Name, Address: person.Email}, ListID: list, Params: params,
		Date: c.opts.Now(),
	})
	return words, composed, err
}

func (c *Campaigns) messageID(number uint32, run int, ordinal uint32, began time.Time) string {
	return outbox.CampaignID{At: began, Campaign: number, Run: run, Ordinal: ordinal}.Message(c.DB.Partitions())
}

// Test mails a campaign to addresses, as a person would get it, with [Test] before the subject.
func (c *Campaigns) Test(ctx context.Context, bound, id string, in api.CampaignTest) (api.CampaignTested,
	error) {
	answer := api.CampaignTested{Sent: []api.CampaignTestMail{}}
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return answer, err
	}
	if len(in.To) < 1 || len(in.To) > 20 {
		return answer, fault.InvalidField("to", "must be 1 to 20 addresses")
	}
	person, _, err := c.sample(ctx, one.Campaign, in.Subscriber)
	if err != nil {
		return answer, err
	}
	sent, err := chosen(one.Campaign, in.Variant)
	if err != nil {
		return answer, err
	}
	one.Bound = one.Bound || bound != ""
	mailing, err := c.previewed(ctx, sent, one.Bound)
	if err != nil {
		return answer, err
	}
	words, _, err := c.written(ctx, mailing, one, person)
	if err != nil {
		return answer, err
	}
	for _, to := range in.To {
		r := api.SubmitRequest{Account: one.Account, From: sent.From, To: api.Addresses{{Address: to}},
			ReplyTo: one.ReplyTo, Subject: "[Test] " + words.Subject, PreviewText: words.PreviewText, HTML: words.HTML,
			Text: words.Text, Gateway: one.Gateway, Render: &api.Render{Off: true}, Tags: one.Tags,
			TrackOpens: new(bool), TrackClicks: new(bool), Bound: one.Bound, Token: in.Token,
			TokenQuota: in.TokenQuota}
		made, err := c.Outbox.Intake.Submit(ctx, r)
		if err != nil {
			return answer, err
		}
		answer.Sent = append(answer.Sent, api.CampaignTestMail{To: to, QueueID: made.QueueID})
	}
	return answer, nil
}
