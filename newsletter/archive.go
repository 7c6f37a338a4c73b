package newsletter

import (
	"cmp"
	"context"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/templates/render"
)

// ArchivePageSize is how many campaigns a page of an archive has, and its feed.
const ArchivePageSize = 50

// summaryBytes bounds the summary of a campaign.
const summaryBytes = 300

// idOfFeed is not an id: its page is a list's feed.
const idOfFeed = "atom.xml"

// Archive shows everybody the campaigns that were sent with archive to public lists, as an unknown reader
// would get them. It is safe for concurrent use.
type Archive struct {
	campaigns *Campaigns
	looks     singleflight.Group
}

// archiveCache is the part of the archive that is kept in memory.
type archiveCache struct {
	all  *redisdb.Cache[[]archived]
	rows *redisdb.Cache[ArchiveRow] // by campaign
}

func (s archiveCache) clear() {
	s.all.Clear()
	s.rows.Clear()
}

// archived is a campaign of the archive.
type archived struct {
	id, account string
	lists       []string
	began       time.Time
}

// ArchiveRow is a campaign of an archive.
type ArchiveRow struct {
	Campaign string
	Title    string // its subject
	Summary  string // its preview text, else the beginning of its text; empty if it has neither
	Began    time.Time
	Ended    time.Time
}

// ArchivePage is a page of the archive of a list.
type ArchivePage struct {
	List *audience.List
	Rows []ArchiveRow // the latest first
	More bool         // there are earlier ones
}

// ArchivedMail is the mail of a campaign for everybody.
type ArchivedMail struct {
	ArchiveRow
	List   *audience.List
	HTML   string // empty if it has text only
	Text   string
	Locale string // empty if not known
}

// noArchive is about all that is not shown, whatever the reason.
func noArchive() error {
	return fault.New(fault.NotFound, "ArchiveNotFound", "The archive has no such page")
}

// Page returns a page of the archive of a list; 0 is the first. NotFound: there is no such list, it is not
// public, or it has no such page.
func (a *Archive) Page(ctx context.Context, listID string, page int) (ArchivePage, error) {
	list, err := a.list(ctx, listID)
	if err != nil {
		return ArchivePage{}, err
	}
	all, err := a.all(ctx)
	if err != nil {
		return ArchivePage{}, err
	}
	mine := slices.DeleteFunc(slices.Clone(all), func(s archived) bool { return !s.of(list) })
	if page < 0 || page > 0 && page*ArchivePageSize >= len(mine) {
		return ArchivePage{}, noArchive()
	}
	mine = mine[page*ArchivePageSize:]
	p := ArchivePage{List: list, More: len(mine) > ArchivePageSize}
	for _, s := range mine[:min(len(mine), ArchivePageSize)] {
		row, err := a.row(ctx, list, s.id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return ArchivePage{}, err
		}
		p.Rows = append(p.Rows, row)
	}
	return p, nil
}

// Mail returns a campaign in a list's archive. It returns NotFound if there is no such list, if it is not
// public, or if the campaign was not sent to it with archive.
func (a *Archive) Mail(ctx context.Context, listID, id string) (ArchivedMail, error) {
	list, err := a.list(ctx, listID)
	if err != nil {
		return ArchivedMail{}, err
	}
	one, err := a.campaigns.known(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && !one.archived().of(list) {
		err = noArchive()
	}
	if err != nil {
		return ArchivedMail{}, err
	}
	return a.fill(ctx, one, list)
}

// list returns a public list.
func (a *Archive) list(ctx context.Context, id string) (*audience.List, error) {
	list, err := a.campaigns.Audience.Lists.Find(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && !list.Public {
		return nil, noArchive()
	}
	return list, err
}

// of reports whether a campaign is in a list's archive.
func (s archived) of(list *audience.List) bool {
	return s.id != "" && s.account == list.Account && slices.Contains(s.lists, list.ListID)
}

// all returns the campaigns of all archives, the latest first. They are read again when one has changed.
func (a *Archive) all(ctx context.Context) ([]archived, error) {
	list, _, err := a.campaigns.archived.all.Get(ctx, "", time.Now(),
		func(ctx context.Context) ([]archived, bool, error) {
			list, err := redisdb.Await[[]archived](ctx, a.looks.DoChan("", func() (any, error) {
				return a.look(context.WithoutCancel(ctx))
			}))
			return list, err == nil, err
		})
	return list, err
}

func (a *Archive) look(ctx context.Context) ([]archived, error) {
	var all []archived
	err := a.campaigns.store.Each(ctx, func(r *records.Record[stored]) error {
		if s := used(r).archived(); s.id != "" {
			all = append(all, s)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b archived) int {
		return cmp.Or(b.began.Compare(a.began), strings.Compare(a.id, b.id))
	})
	return all, err
}

// archived returns a campaign as the archive has it, without an id if it is not in there.
func (c *campaign) archived() archived {
	run := c.shown()
	if !c.Archive || run == 0 {
		return archived{}
	}
	return archived{id: c.id, account: c.Account, lists: c.Lists, began: c.Runs[run-1].Began}
}

// shown returns the number of the run that the archive shows, which is the first that was not cancelled, or 0
// if there is none.
func (s *stored) shown() int {
	return 1 + slices.IndexFunc(s.Runs, func(r sending) bool { return r.Sent })
}

// variantShown returns which variant of that run it shows: the winner, else the first.
func (s *stored) variantShown() int { return max(0, indexOf(s.Campaign, s.Runs[s.shown()-1].Winner)) }

// row returns the row of a campaign.
func (a *Archive) row(ctx context.Context, list *audience.List, id string) (ArchiveRow, error) {
	row, _, err := a.campaigns.archived.rows.Get(ctx, id, time.Now(),
		func(ctx context.Context) (ArchiveRow, bool, error) {
			mail, err := a.Mail(ctx, list.ListID, id)
			return mail.ArchiveRow, err == nil, err
		})
	return row, err
}

// fill returns the mail of a campaign for everybody: as it was saved when its run began.
func (a *Archive) fill(ctx context.Context, one *campaign, list *audience.List) (ArchivedMail, error) {
	run, variant := one.Runs[one.shown()-1], one.variantShown()
	sh := shared(as(one.Campaign, variant), run.Subject, one.Bound)
	mailing, err := a.campaigns.Outbox.Mailings.Load(ctx, sh, run.Snapshots[variant])
	if fault.Is(err, fault.NotFound) {
		a.campaigns.log.WarnContext(ctx, "campaign not shown in the archive", "campaign", one.id, "error", err)
		err = noArchive()
	}
	if err != nil {
		return ArchivedMail{}, err
	}
	words, err := a.anonymous(ctx, one, mailing, list)
	if err != nil {
		return ArchivedMail{}, err
	}
	mail := ArchivedMail{List: list, HTML: words.HTML, Text: words.Text, Locale: mailing.Content().Locale,
		ArchiveRow: ArchiveRow{Campaign: one.id, Title: cmp.Or(strings.TrimSpace(words.Subject), list.Name),
			Began: run.Began, Ended: run.Began}}
	if run.Ended != nil {
		mail.Ended = *run.Ended
	}
	mail.Summary = message.Shorten(cmp.Or(words.PreviewText, strings.Join(strings.Fields(words.Text), " ")),
		summaryBytes)
	return mail, nil
}

// anonymous fills a mailing without a recipient. Attributes have the campaign's fallbacks.
func (a *Archive) anonymous(ctx context.Context, one *campaign, mailing *outbox.Mailing,
	list *audience.List) (render.Mail, error) {
	m, err := a.campaigns.filling(ctx, one.Campaign)
	if err != nil {
		return render.Mail{}, err
	}
	params, err := m.filled(audience.Person{})
	if err != nil {
		return render.Mail{}, err
	}
	return mailing.Fill(ctx, params, a.campaigns.url("/subscribers?listId="+url.QueryEscape(list.ListID)))
}

// url returns a public address of Postroom; without serviceUrl, its path.
func (c *Campaigns) url(path string) string {
	return strings.TrimRight(c.opts.ServiceURL(), "/") + path
}

// archiveURL returns a campaign's address in the archive of its first public list, or "" if it has none.
func (c *Campaigns) archiveURL(ctx context.Context, in api.Campaign) (string, error) {
	for _, id := range in.Lists {
		if !in.Archive {
			break
		}
		list, err := c.Audience.Lists.Find(ctx, id)
		if err == nil && list.Public {
			return c.url("/archive/" + list.ListID + "/" + in.Campaign), nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
	}
	return "", nil
}

// filling returns the values that a campaign's mail is filled with.
func (c *Campaigns) filling(ctx context.Context, in api.Campaign) (mail, error) {
	m := newMail(in)
	url, err := c.archiveURL(ctx, in)
	if url != "" { // else the variable is missing
		m.about["archiveUrl"] = url
	}
	return m, err
}

// keepContent keeps the content that the archive shows of a campaign whose run has ended, and releases all
// others. A run that has begun since continues with its own.
func (c *Campaigns) keepContent(ctx context.Context, id string) error {
	one, err := c.find(ctx, "", id) // as it is now: it may have been put into the archive a moment ago
	if err != nil || !ended(one.State) {
		return err
	}
	kept := ""
	if one.shown() > 0 && one.Archive {
		var held bool
		if held, kept, err = c.holdShown(ctx, one); err != nil {
			return err
		}
		if !held {
			c.log.WarnContext(ctx, "the content of a campaign is gone; the archive does not show it", "campaign", id)
		}
	}
	for n, run := range one.Runs {
		err := c.release(ctx, sendlog.Run{Campaign: one.Number, Number: n + 1}, &run, kept)
		if err != nil {
			return err
		}
	}
	return nil
}

// holdShown keeps the content that the archive shows of a campaign. It returns its name, and false if it is
// gone.
func (c *Campaigns) holdShown(ctx context.Context, one *campaign) (held bool, name string, err error) {
	run, variant := one.shown(), one.variantShown()
	name = mailingName(sendlog.Run{Campaign: one.Number, Number: run}, variant)
	held, err = c.Outbox.Mailings.Hold(ctx, name, one.Runs[run-1].Snapshots[variant].Name)
	return held, name, err
}

// publishes reports whether a patch changes nothing but the place in the archive.
func publishes(p api.CampaignPatch) bool {
	there := p.Archive != nil
	p.Archive, p.Version = nil, nil
	return there && reflect.ValueOf(p).IsZero()
}

// publish puts a campaign into the archive or takes it out, in any state.
func (c *Campaigns) publish(ctx context.Context, bound, id string, p api.CampaignPatch) (api.CampaignInfo,
	error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignInfo{}, err
	}
	if one.shown() > 0 && *p.Archive && ended(one.State) {
		held, _, err := c.holdShown(ctx, one)
		if err != nil {
			return api.CampaignInfo{}, err
		}
		if !held {
			return api.CampaignInfo{}, fault.New(fault.Conflict, "ContentGone", "The content of campaign "+
				"%q is no longer stored, because the campaign wasn't in the archive", id)
		}
	}
	one, err = c.change(ctx, bound, id, func(s *stored) error {
		s.Archive = *p.Archive
		return outdated(s, p.Version)
	})
	if err == nil && ended(one.State) && one.run() != nil {
		err = c.enliven(ctx, id) // the dispatcher keeps or releases the content
	}
	if err != nil {
		return api.CampaignInfo{}, err
	}
	return c.info(ctx, one)
}
