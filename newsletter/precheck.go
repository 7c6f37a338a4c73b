package newsletter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/postroom/postroom/smtpsend"
)

// ownNames matches the variables of a subscriber that are empty if the subscriber lacks them, and so never
// missing.
var ownNames = regexp.MustCompile(`\{\{\s*(?:params\.)?subscriber\.(name|locale|tz)\s*\}\}`)

// clipped is the size of html beyond which Gmail shows only its beginning.
const clipped = 102 << 10

// Check finds what keeps a campaign from being sent, and what should be looked at. It asks the DNS and the
// links; Send does not.
func (c *Campaigns) Check(ctx context.Context, bound, id string) (api.CampaignCheck, error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignCheck{}, err
	}
	one.Bound = one.Bound || bound != ""
	e := precheck{campaigns: c, one: one, outside: true}
	err = e.run(ctx)
	return e.result, err
}

// Inspection is what Inspect finds.
type Inspection struct {
	api.CampaignCheck
	Recipients int // about how many people get it, after its segments and excluded lists
}

// Inspect is Check without the DNS and the links. It takes no longer than a page may, and estimates how many
// people get the campaign.
func (c *Campaigns) Inspect(ctx context.Context, bound, id string) (Inspection, error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return Inspection{}, err
	}
	one.Bound = one.Bound || bound != ""
	e := precheck{campaigns: c, one: one}
	if err := e.run(ctx); err != nil {
		return Inspection{}, err
	}
	found := Inspection{CampaignCheck: e.result, Recipients: e.result.Audience}
	in := one.Campaign
	if len(in.Lists)+len(in.ExcludeLists)+len(in.Segments)+len(in.ExcludeSegments) > 1 && found.OK {
		found.Recipients, err = c.estimate(ctx, in)
	}
	return found, err
}

// estimate returns about how many people a campaign selects. It looks at some of them if they are many.
func (c *Campaigns) estimate(ctx context.Context, in api.Campaign) (int, error) {
	choice, err := c.choose(ctx, in.Campaign, selection(in))
	if err != nil {
		return 0, err
	}
	end, err := c.Audience.End(ctx, in.Account)
	found := 0
	for from, n := uint32(0), 0; err == nil && from < end; n++ {
		if n == sampleStretches {
			return int(float64(found) * float64(end) / float64(from)), nil
		}
		var people []audience.Person
		people, from, err = c.Audience.People(ctx, choice, from, end, stretchPages)
		found += len(people)
	}
	return found, err
}

// precheck looks for errors in a campaign.
type precheck struct {
	campaigns *Campaigns
	one       *campaign
	outside   bool      // the DNS and the links are asked
	at        time.Time // when it begins; in the past: now
	variant   string
	result    api.CampaignCheck
}

func (e *precheck) fail(code, text string) {
	e.result.Faults = append(e.result.Faults, api.CampaignFault{Code: code, Message: e.of() + text})
}

func (e *precheck) warn(code, text string) {
	e.result.Warnings = append(e.result.Warnings, api.CampaignFault{Code: code, Message: e.of() + text})
}

// of names the variant that is checked.
func (e *precheck) of() string {
	if e.variant == "" {
		return ""
	}
	return "Variant " + e.variant + ": "
}

// run looks at everything.
func (e *precheck) run(ctx context.Context) error {
	e.result = api.CampaignCheck{Faults: []api.CampaignFault{}, Warnings: []api.CampaignFault{}}
	in := e.one.Campaign
	if len(in.Lists) == 0 {
		e.fail("NoList", "The campaign has no list. Set lists")
	}
	if base := e.campaigns.opts.ServiceURL(); !strings.HasPrefix(base, "https://") && !local(base) {
		e.fail("NoPublicUrl", "The links require a public HTTPS URL. Set serviceUrl")
	}
	if err := e.campaigns.check(ctx, in); fault.Is(err, fault.Invalid) {
		f, _ := errors.AsType[*fault.Error](err)
		for _, field := range f.Fields {
			e.fail("Invalid", field.Key+" "+field.Message)
		}
	} else if err != nil {
		return err
	}
	if err := e.campaigns.mayName(ctx, in, e.one.Bound); fault.Is(err, fault.Forbidden) {
		e.fail(fault.CodeOf(err), err.Error())
	} else if err != nil {
		return err
	}
	for _, id := range in.Lists {
		if list, err := e.campaigns.Audience.Lists.Get(ctx, in.Account, id); err == nil {
			e.result.Audience += list.Counts.Subscribed
		}
	}
	if url, err := e.campaigns.archiveURL(ctx, in); err != nil {
		return err
	} else if in.Archive && url == "" {
		e.warn(notPublic.Code, notPublic.Message)
	}
	e.test()
	e.room()
	for i, content := range contentsOf(in) {
		if len(in.Variants) > 0 {
			e.variant = in.Variants[i].Variant
		}
		switch {
		case content.Template == "" && content.HTML == "" && content.Text == "":
			e.fail("NoContent", "The campaign has no content. Set html, text or template")
		case len(e.result.Faults) == 0:
			if err := e.mail(ctx, content, i == 0); err != nil {
				return err
			}
		}
	}
	e.variant = ""
	e.result.OK = len(e.result.Faults) == 0
	return nil
}

// test finds a test that can't have a result: not even if all people of the lists got the campaign.
func (e *precheck) test() {
	in := e.one.Campaign
	t, n := trialOf(in), len(in.Variants)
	if n == 0 || t.share == 1 || t.metric == byHand {
		return
	}
	if each := int(float64(e.result.Audience) * t.share / float64(n)); each < t.minimum {
		e.fail("TestTooSmall",
			fmt.Sprintf("About %d people would get each variant in the test, but %d must. Raise "+
				"test.share, or lower test.minimum", each, t.minimum))
	}
}

// room finds times that leave no room to send anything.
func (e *precheck) room() {
	in, start := e.one.Campaign, e.campaigns.opts.Now()
	if at := e.one.At; e.at.IsZero() && at != nil {
		e.at = *at
	}
	if in.EndAt == nil {
		return
	}
	if e.at.After(start) {
		start = e.at
	}
	if in.Window != nil && in.Window.Of != "recipient" {
		zone := time.UTC
		if in.TZ != "" {
			zone, _ = schedule.Zone(in.TZ) // checked when it was stored
		}
		window, _ := schedule.ParseWindow(in.Window.Days, in.Window.From, in.Window.Until) // likewise
		start = window.Next(start, zone)
	}
	if !start.Before(*in.EndAt) {
		e.fail("NoTime", fmt.Sprintf("The campaign would start at %s, but its endAt is %s. Change one of "+
			"them",
			start.UTC().Format(time.RFC3339), in.EndAt.UTC().Format(time.RFC3339)))
	}
}

// local reports whether an address is on this machine, where only the developer follows links.
func local(base string) bool {
	return strings.HasPrefix(base, "http://127.0.0.1") || strings.HasPrefix(base, "http://localhost")
}

// mail writes an email to some people, and finds errors in it. first means that nothing else of the campaign
// was checked.
func (e *precheck) mail(ctx context.Context, content api.Campaign, first bool) error {
	mailing, err := e.campaigns.Outbox.Mailings.Mailing(ctx, shared(content, "", e.one.Bound))
	switch {
	case fault.Is(err, fault.Unavailable):
		return err
	case err != nil:
		e.fail("TemplateFault", err.Error())
		return nil
	}
	const sampled = 20
	people, err := e.campaigns.some(ctx, content, sampled)
	if err != nil {
		return err
	}
	if len(people) == 0 {
		if first {
			e.warn("Nobody", "Nobody is subscribed to its lists, or its segments select none of them")
		}
		people = []audience.Person{standIn}
	}
	written, err := e.write(ctx, mailing, people)
	if err != nil || written == nil {
		return err
	}
	e.judge(written, mailing.Content().Source)
	relays, err := e.campaigns.Relays(ctx, mailing.Account(), e.one.Gateway, api.Bulk)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	e.carried(relays, written)
	if first {
		e.time(relays, mailing.Account())
	}
	if e.outside {
		return e.ask(ctx, mailing, written, content, people[:1])
	}
	return nil
}

// sample is an email that was written for the check.
type sample struct {
	words    render.Mail
	raw      []byte
	envelope message.Envelope
	captive  map[string]bool // parts that show somebody no way to unsubscribe
}

// write writes the mail to people, and finds params that they lack. It returns one of the messages, and what
// is wrong with any of them, or nil.
func (e *precheck) write(ctx context.Context, mailing *outbox.Mailing, people []audience.Person) (*sample,
	error) {
	missing, captive := map[string]bool{}, map[string]bool{}
	fallbacks, content := newMail(e.one.Campaign).fallbacks, mailing.Content()
	for _, used := range ownNames.FindAllStringSubmatch(
		fmt.Sprint(content.Source, content.Options.Layout, content.Options.Partials), -1) {
		if fallbacks[used[1]] == nil && slices.ContainsFunc(people, func(p audience.Person) bool {
			return map[string]string{"name": p.Name, "locale": p.Locale, "tz": p.TZ}[used[1]] == ""
		}) {
			missing["subscriber."+used[1]] = true
		}
	}
	var found *sample
	for _, p := range people {
		words, composed, err := e.campaigns.written(ctx, mailing, e.one, p)
		for _, m := range words.Missing {
			missing[m.Name] = true
		}
		switch {
		case fault.Is(err, fault.Unprocessable):
		case fault.Is(err, fault.Unavailable):
			return nil, err
		case err != nil:
			e.fail("TemplateFault", err.Error())
			return nil, nil
		default:
			for _, part := range mailing.Captive(words) {
				captive[part] = true
			}
			if found == nil {
				found = &sample{words: words, raw: composed.Raw, envelope: composed.Envelope, captive: captive}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if strings.TrimPrefix(name, "params.") == "campaign.archiveUrl" {
			e.fail("NoArchive", "The content uses campaign.archiveUrl, but the campaign has no public "+
				"page. Set archive, and make a list public")
			continue
		}
		e.warn("Missing", name+" is missing for some subscribers; set a fallback")
	}
	return found, nil
}

// judge finds errors in an email as one person would get it.
func (e *precheck) judge(m *sample, source render.Source) {
	for _, part := range slices.Sorted(maps.Keys(m.captive)) {
		e.fail("NoUnsubscribeLink", "The "+part+" has no visible unsubscribe link. Add "+
			"{{rcpt.unsubscribeUrl}} or {{rcpt.preferencesUrl}}")
	}
	if m.words.HTML == "" && m.words.Text == "" {
		e.fail("NoContent", "The template is empty")
	}
	if m.words.HTML != "" && source.Text == "" {
		e.warn("NoText", "It has no text part of its own; one is made from the html")
	}
	if len(m.raw) > clipped {
		e.warn("Clipped", "The email is larger than 102 KB, so Gmail cuts it off before the unsubscribe link")
	}
	if strings.TrimSpace(m.words.Subject) == "" {
		e.fail("NoSubject", "It has no subject")
	}
}

// carried names the gateways that can't carry the mail. It is an error if none can.
func (e *precheck) carried(relays []gateways.Relay, m *sample) {
	lacks := routing.Carried(relays, smtpsend.Message{From: m.envelope.From, To: m.envelope.To}, m.raw)
	for _, lack := range lacks {
		if len(lacks) == len(relays) {
			e.fail("NotCarried", lack.Error())
		} else {
			e.warn("NotCarried", lack.Error()+"; others of the account get it")
		}
	}
}

// time says how long the campaign takes at least, with its rate and through the limits of its relays.
func (e *precheck) time(relays []gateways.Relay, account accounts.Sender) {
	now := e.campaigns.opts.Now()
	took, ok := duration(e.result.Audience, func(day int) (perSecond, perDay float64) {
		all := pace{}
		for _, r := range relays {
			all = all.plus(paceOf(r.RateAt(now.Add(time.Duration(day) * 24 * time.Hour))))
		}
		return all.least(paceOf(account.Rate)).least(paceOf(limits.Rate{PerSecond: e.one.Rate})).get()
	})
	switch {
	case !ok:
		e.warn("TooSlow", "It would take more than a year through the limits of its relays")
	case took >= 24*time.Hour:
		e.result.Takes = fmt.Sprintf("%d days", int(math.Ceil(took.Hours()/24)))
	case took >= time.Second:
		e.result.Takes = took.Round(time.Second).String()
	}
	if took >= 24*time.Hour && e.one.Gateway != "" {
		e.result.Takes += " through gateway " + e.one.Gateway
	}
}
