package digest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest/mail"
	"github.com/postroom/postroom/internal/schedule"
)

// manner is how a run is sent. It is stored as the run begins, so that a repetition makes the same message.
type manner struct {
	Lane     api.Lane          `json:"lane"`
	Template string            `json:"template,omitempty"` // if empty, the built-in mail
	Listed   bool              `json:"listed,omitempty"`   // it has the list of digests, which readers may leave
	Titles   map[string]string `json:"titles,omitempty"`   // categories' titles, in the language of the mail
	Cap      int               `json:"cap"`
	Category int               `json:"category"`
	Feed     string            `json:"feed,omitempty"`
	Thread   string            `json:"thread,omitempty"` // what its References name, or empty
}

// digestTemplate is the stored template that replaces the built-in mail of an account.
const digestTemplate = "digest"

// mannerOf returns how categories are sent to a recipient now, for the record.
func (b *base) mannerOf(ctx context.Context, r *recipient, p planned, kinds map[string]*api.DigestKind) (
	string, error) {
	m := manner{Cap: b.opts.Cap, Category: b.opts.CapCategory,
		Feed: strings.ReplaceAll(b.opts.FeedURL, "{recipient}", url.QueryEscape(r.id))}
	m.Lane, _, m.Listed = b.opts.lane(p.categories, kinds)
	m.Listed = m.Listed && b.opts.ServiceURL() != ""
	if b.opts.Threads {
		m.Thread = thread(r.readerKey, p.schedule)
	}
	var err error
	if m.Template, err = b.templateOf(ctx, r.account, p.categories, kinds); err != nil {
		return "", err
	}
	for _, category := range p.categories {
		name := strings.TrimPrefix(category, urgentCategory)
		if title := titleOf(kinds[name], name, r.locale); title != name {
			if m.Titles == nil {
				m.Titles = map[string]string{}
			}
			m.Titles[name] = title
		}
	}
	raw, err := json.Marshal(m)
	return string(raw), err
}

// templateOf returns the stored template for categories, or "" for the built-in mail. A kind's template is
// left out if it is gone.
func (b *base) templateOf(ctx context.Context, account string, categories []string,
	kinds map[string]*api.DigestKind) (string, error) {
	_, own, _ := b.opts.lane(categories, kinds)
	for _, template := range []string{own, digestTemplate} {
		if template == "" {
			continue
		}
		if has, err := b.HasTemplate(ctx, account, template); has || err != nil {
			return template, err
		}
	}
	return "", nil
}

// templateFaults begins the codes of template errors. After such an error, a run chooses its template again,
// as if it began now: nothing was submitted that a repetition could differ from.
const templateFaults = "Template"

// thread returns the Message-ID that begins a schedule's conversation. No such message exists: programs join
// messages that refer to the same one (RFC 5322 section 3.6.4), and no one owns .invalid (RFC 2606).
func thread(k readerKey, schedule string) string {
	return "<" + runID(k, schedule, "thread") + "@" + ListID(k.account) + ".invalid>"
}

// made is the mail of a run.
type made struct {
	request api.SubmitRequest
	record  string
}

// mailOf makes a run's mail from the events it took. The same run makes the same email.
func (b *base) mailOf(r *run, taken lists) (made, error) {
	d, packed, err := r.says(taken)
	if err != nil {
		return made{}, err
	}
	req, err := b.write(r, d)
	return made{req, packed}, err
}

// says returns what the mail of a run says, and the same for the record.
func (r *run) says(taken lists) (d mail.Digest, packed string, _ error) {
	all, ids, err := taken.groups(r.taken)
	if err != nil {
		return d, "", err
	}
	d, kept := digestOf(all, r)
	kept.Events = ids[max(0, len(ids)-mostIDs):]
	if packed, err = kept.write(); err != nil {
		err = fmt.Errorf("keep what run %s says: %w", r.id, err)
	}
	return d, packed, err
}

// write returns the message of a run.
func (b *base) write(r *run, d mail.Digest) (req api.SubmitRequest, _ error) {
	zone, err := schedule.Zone(r.tz)
	if err != nil {
		zone = time.UTC
	}
	metadata, err := json.Marshal(map[string]string{"digestRun": r.id, "recipient": r.readerKey.id})
	if err != nil {
		return req, err
	}
	req = api.SubmitRequest{Account: r.account, To: api.Addresses{{Name: r.name, Address: r.email}},
		IdempotencyKey: r.mailKey(), Lane: r.manner.Lane, Locale: r.locale, TZ: r.tz, Metadata: metadata,
		Tags: []string{"digest"},
		// RFC 3834: no replies of absent people
		Headers: api.Headers{"Auto-Submitted": {"auto-generated"}, "Precedence": {"bulk"}}}
	if r.manner.Listed {
		req.ListID = ListID(r.account)
	}
	if r.manner.Thread != "" {
		req.References = []string{r.manner.Thread}
	}
	if r.manner.Template != "" {
		req.Template = r.manner.Template
		params, err := mail.Params(d, r.locale, zone)
		req.Render = &api.Render{Params: params}
		return req, err
	}
	mail, err := mail.Write(d, r.locale, zone)
	no := false
	req.Subject, req.PreviewText, req.HTML, req.Text = mail.Subject, mail.PreviewText, mail.HTML, mail.Text
	req.TrackOpens, req.TrackClicks = &no, &no
	req.Render = &api.Render{Params: mail.Params}
	return req, err
}

// mailKey is the idempotency key of a run's message. A failed run's key is blocked, so a run that is repeated
// has another.
func (r *run) mailKey() string {
	key := "digest/" + r.id
	if r.retries > 0 {
		key += "/" + strconv.Itoa(r.retries)
	}
	return key
}

// mostIDs bounds the ids of events that a run keeps.
const mostIDs = 1000

// digestOf returns what an email of groups says, and what its run keeps of it.
func digestOf(all []*group, r *run) (mail.Digest, record) {
	d := mail.Digest{Schedule: r.schedule, Period: r.period, FeedURL: r.manner.Feed}
	kept := record{Groups: []api.DigestGroup{}}
	if len(all) == 0 {
		return d, kept
	}
	first, last := all[0].first, all[0].last
	for _, g := range all {
		d.Total += g.count
		first, last = min(first, g.first), max(last, g.last)
	}
	d.From, d.To = time.UnixMilli(first).UTC(), time.UnixMilli(last).UTC()
	shown, left := capped(all, r.manner.Cap, r.manner.Category)
	d.Rest = left
	for _, g := range shown {
		title := r.manner.Titles[g.category]
		one := g.shown(title)
		d.Groups = append(d.Groups, one)
		kept.Groups = append(kept.Groups, asGroup(one))
	}
	return d, kept
}

// asGroup returns a group as the API shows it.
func asGroup(g mail.Group) api.DigestGroup {
	shown := api.DigestGroup{Category: g.Category, EntityType: g.EntityType, EntityID: g.EntityID,
		Title: g.Title, URL: g.URL, Count: g.Count, First: g.First, Last: g.Last,
		Others: g.Others, Priority: g.Priority, Payload: g.Payload, Actors: []api.DigestActor{}}
	for _, a := range g.Actors {
		shown.Actors = append(shown.Actors, api.DigestActor(a))
	}
	return shown
}
