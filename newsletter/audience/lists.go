package audience

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/schedule"
)

// DefaultAccount is the account of requests that name none.
const DefaultAccount = "default"

// List is a list, as other parts of Postroom use it.
type List struct {
	api.List
	Number  uint32        // the list's in records of subscribers
	Pending time.Duration // how long a subscription waits for its confirmation
}

// Double reports whether subscriptions need a confirmation.
func (l *List) Double() bool { return l.OptIn != optInSingle }

// The values of api.List.OptIn.
const (
	optInDouble = "double"
	optInSingle = "single"
)

type storedList struct {
	api.List
	Number  uint32 `json:"number"`
	Version int    `json:"version"`
}

// Lists stores the lists of all accounts.
type Lists struct {
	db      *redisdb.DB
	store   *records.Store[storedList]
	cached  *redisdb.Cache[*List]
	account func(ctx context.Context, account string) error
	pending time.Duration
	now     func() time.Time
}

func newLists(p Parts, o Options) *Lists {
	l := &Lists{db: p.DB, account: p.Account, pending: o.PendingRetention, now: o.Now}
	l.store = records.New(p.DB, nil, records.Kind[storedList]{
		Key: "list", Index: "lists", Name: "list", Code: "ListChanged", Missing: listNotFound,
		Secrets: func(*storedList) []records.Secret { return nil },
	}, records.Options[storedList]{Now: o.Now, InUse: o.InUse, Forget: func(string) { l.cached.Clear() }})
	l.cached = redisdb.NewCache[*List](p.DB, l.store.VersionKey(), nil)
	return l
}

func listNotFound(id string) error {
	return fault.New(fault.NotFound, "ListNotFound", "There is no list %q. GET /v1/lists shows all lists", id)
}

// listIDs matches a label of a host name (RFC 1123 section 2.1) in lower case.
var listIDs = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// numbersKey is the hash of the ids of lists by number; "last" is the number given last.
func numbersKey() string { return redisdb.Key(0, "list-numbers") }

// Create stores a new list. bound is the account that the caller is confined to, if any. It returns Invalid
// with the invalid fields, and Conflict, code ListExists, if the id is in use.
func (l *Lists) Create(ctx context.Context, bound string, in api.List) (api.ListInfo, error) {
	in.Account = cmp.Or(in.Account, bound, DefaultAccount)
	if bound != "" && in.Account != bound {
		return api.ListInfo{}, notYours(in.Account)
	}
	in.ListID = cmp.Or(strings.ToLower(in.ListID), IDFromName("list", in.Name))
	in.OptIn = cmp.Or(in.OptIn, optInDouble)
	if err := checkList(&in); err != nil {
		return api.ListInfo{}, err
	}
	if err := l.account(ctx, in.Account); err != nil {
		return api.ListInfo{}, err
	}
	number, err := TakeNumber(ctx, l.db, numbersKey(), in.ListID)
	if err != nil {
		return api.ListInfo{}, err
	}
	_, err = l.store.Change(ctx, in.ListID, func(old *records.Record[storedList]) (storedList, error) {
		if old != nil {
			return storedList{}, fault.New(fault.Conflict, "ListExists", "There is already a list "+
				"%q", in.ListID)
		}
		return storedList{List: in, Number: number, Version: 1}, nil
	})
	if err != nil {
		return api.ListInfo{}, err
	}
	return l.Get(ctx, bound, in.ListID)
}

// IDFromName makes the ID of a kind of thing from its name: "Weekly news!" becomes weekly-news.
func IDFromName(kind, name string) string {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	id = strings.Join(strings.FieldsFunc(id, func(r rune) bool { return r == '-' }), "-")
	if id = strings.Trim(id[:min(len(id), 63)], "-"); id == "" {
		return kind + "-" + strings.ToLower(rand.Text()[:8])
	}
	return id
}

// checkList returns an error that names the wrong fields of a list.
func checkList(in *api.List) error {
	var wrong fault.Fields
	if !listIDs.MatchString(in.ListID) {
		wrong.Add("listId", "must be a label of a host name: up to 63 letters a-z, digits and hyphens")
	}
	checkName(in.Name, &wrong)
	if in.OptIn != optInDouble && in.OptIn != optInSingle {
		wrong.Add("optIn", "must be double or single")
	}
	if in.PendingRetention != "" {
		d, err := schedule.ParseDuration(in.PendingRetention)
		if err != nil || d < time.Hour || d > 366*24*time.Hour {
			wrong.Add("pendingRetention", "must be a duration from 1h to 8784h, such as 30d or 720h")
		}
	}
	checkListMail(in.Confirmation, "confirmation", &wrong)
	checkListMail(in.Welcome, "welcome", &wrong)
	return fault.InvalidFields(wrong)
}

// checkName checks the name of a list or a segment.
func checkName(name string, wrong *fault.Fields) {
	switch {
	case strings.TrimSpace(name) == "":
		wrong.Add("name", "is required")
	case !message.IsLine(name):
		wrong.Add("name", "must be one line without control characters")
	}
}

func checkListMail(m *api.ListMail, key string, wrong *fault.Fields) {
	switch {
	case m == nil:
	case m.Template != "" && (m.Subject != "" || m.HTML != "" || m.Text != ""):
		wrong.Add(key+".template", "can't be combined with subject, html or text")
	case m.Template == "" && m.Subject == "":
		wrong.Add(key+".subject", "is required, or template")
	case m.Template == "" && m.HTML == "" && m.Text == "":
		wrong.Add(key+".text", "is required, or html")
	}
}

// TakeNumber returns a number that nothing else in a hash of ids by number has. The field "last" of the hash
// is the number given last.
func TakeNumber(ctx context.Context, db *redisdb.DB, key, id string) (uint32, error) {
	n, err := db.Client().HIncrBy(ctx, key, "last", 1).Result()
	if err == nil {
		err = db.Client().HSet(ctx, key, strconv.FormatInt(n, 10), id).Err()
	}
	return uint32(n), redisdb.Failed(err, "take a number for %s", id)
}

// Get returns a list with its counts. Unknown, or of another account: NotFound.
func (l *Lists) Get(ctx context.Context, bound, id string) (api.ListInfo, error) {
	r, err := l.record(ctx, bound, id)
	if err != nil {
		return api.ListInfo{}, err
	}
	shown, err := l.shown(ctx, []*records.Record[storedList]{r})
	if err != nil {
		return api.ListInfo{}, err
	}
	return shown[0], nil
}

func (l *Lists) record(ctx context.Context, bound, id string) (*records.Record[storedList], error) {
	r, err := l.store.Get(ctx, strings.ToLower(id))
	if err == nil && bound != "" && r.Value.Account != bound {
		return nil, listNotFound(id)
	}
	return r, err
}

// Update changes the fields of a list that the patch has.
func (l *Lists) Update(ctx context.Context, bound, id string, p api.ListPatch) (api.ListInfo, error) {
	err := l.store.Update(ctx, strings.ToLower(id), func(old *records.Record[storedList]) (storedList, error) {
		next := old.Value
		if bound != "" && next.Account != bound {
			return next, listNotFound(id)
		}
		if p.Version != nil && *p.Version != next.Version {
			return next, fault.New(fault.Conflict, "ListChanged", "List %q is now at version %d, not %d. "+
				"Read it again and repeat your change", id,
				next.Version, *p.Version)
		}
		api.Patch(&next.List, p)
		next.Version++
		return next, checkList(&next.List)
	})
	if err != nil {
		return api.ListInfo{}, err
	}
	return l.Get(ctx, bound, id)
}

// Page returns a page of lists of one account, or of all.
func (l *Lists) Page(ctx context.Context, bound string, q api.ListQuery) (api.ListPage, error) {
	mine, err := ofAccount(ctx, l.store, bound, q.Account, func(s storedList) string { return s.Account })
	if err != nil {
		return api.ListPage{}, err
	}
	numbers, from, end := q.Of(len(mine))
	shown, err := l.shown(ctx, mine[from:end])
	return api.ListPage{PageNumbers: numbers, Lists: shown}, err
}

// ofAccount returns the records of one account, or of all.
func ofAccount[T any](ctx context.Context, store *records.Store[T], bound, account string,
	accountOf func(T) string) (all []*records.Record[T], _ error) {
	account = cmp.Or(account, bound)
	if bound != "" && account != bound {
		return nil, notYours(account)
	}
	err := store.Each(ctx, func(r *records.Record[T]) error {
		if account == "" || accountOf(r.Value) == account {
			all = append(all, r)
		}
		return nil
	})
	return all, err
}

// shown returns lists with their counts, which are read with one round trip.
func (l *Lists) shown(ctx context.Context, rs []*records.Record[storedList]) ([]api.ListInfo, error) {
	pipe := l.db.Client().Pipeline()
	counts := make([][shards]*redis.MapStringStringCmd, len(rs))
	for i, r := range rs {
		for shard := range shards {
			counts[i][shard] = pipe.HGetAll(ctx, countsKey(r.Value.Number, shard))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && len(rs) > 0 {
		return nil, redisdb.Failed(err, "count the subscribers of lists")
	}
	shown := make([]api.ListInfo, len(rs))
	for i, r := range rs {
		shown[i] = api.ListInfo{List: r.Value.List, Version: r.Value.Version, Created: r.Created,
			Updated: r.Updated}
		for _, cmd := range counts[i] {
			for state, text := range cmd.Val() {
				n, _ := strconv.Atoi(text)
				addCount(&shown[i].Counts, stateNamed(state), n)
			}
		}
	}
	return shown, nil
}

func addCount(c *api.ListCounts, state State, n int) {
	switch state {
	case Pending:
		c.Pending += n
	case Subscribed:
		c.Subscribed += n
	case Left:
		c.Left += n
	}
}

// Find returns a list for use, or NotFound. It is at most about a second old, and usually costs no round
// trip.
func (l *Lists) Find(ctx context.Context, id string) (*List, error) {
	id = strings.ToLower(id)
	list, ok, err := l.cached.Get(ctx, id, l.now(), func(ctx context.Context) (*List, bool, error) {
		r, err := l.store.Get(ctx, id)
		if err != nil {
			return nil, false, err
		}
		return l.used(&r.Value), true, nil
	})
	if err == nil && !ok {
		err = listNotFound(id)
	}
	return list, err
}

func (l *Lists) used(s *storedList) *List {
	list := &List{List: s.List, Number: s.Number, Pending: l.pending}
	if d, err := schedule.ParseDuration(s.PendingRetention); err == nil {
		list.Pending = d
	}
	return list
}

// numbered returns the list of a number, or nil if it was deleted.
func (l *Lists) numbered(ctx context.Context, number uint32) (*List, error) {
	name := "#" + decimal(number) // no id begins so
	list, _, err := l.cached.Get(ctx, name, l.now(), func(ctx context.Context) (*List, bool, error) {
		id, err := l.db.Client().HGet(ctx, numbersKey(), name[1:]).Result()
		if errors.Is(err, redis.Nil) {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, redisdb.Failed(err, "look for list number %d", number)
		}
		r, err := l.store.Get(ctx, id)
		switch {
		case fault.Is(err, fault.NotFound) || err == nil && r.Value.Number != number:
			return nil, true, nil
		case err != nil:
			return nil, false, err
		}
		return l.used(&r.Value), true, nil
	})
	return list, err
}

func notYours(account string) error {
	return fault.New(fault.Forbidden, "", "This token belongs to another account, not to %q", account)
}

// Delete removes a list with all of its subscriptions, and reports whether there was one. The subscribers
// stay, and so do suppressions of people who unsubscribed. It returns NotFound for another account's list.
func (l *Lists) Delete(ctx context.Context, bound, id string) (bool, error) {
	r, err := l.record(ctx, bound, id)
	if fault.Is(err, fault.NotFound) && bound == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := l.store.Delete(ctx, r.ID); err != nil {
		return false, err
	}
	return true, l.dropStates(ctx, r)
}

// dropStates deletes the states and counts of a list that was deleted.
func (l *Lists) dropStates(ctx context.Context, r *records.Record[storedList]) error {
	last, err := l.db.Client().HGet(ctx, ordinalsKey(), r.Value.Account).Uint64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return redisdb.Failed(err, "delete the subscriptions of list %s", r.ID)
	}
	pipe := l.db.Client().Pipeline()
	for chunk := range int(last/chunkSize) + 1 {
		pipe.Unlink(ctx, statesKey(r.Value.Number, chunk))
	}
	for shard := range shards {
		pipe.Unlink(ctx, countsKey(r.Value.Number, shard))
		pipe.Unlink(ctx, pendingKey(r.Value.Number, shard))
	}
	pipe.HDel(ctx, numbersKey(), decimal(r.Value.Number))
	if _, err := pipe.Exec(ctx); err != nil {
		return redisdb.Failed(err, "delete the subscriptions of list %s", r.ID)
	}
	return nil
}
