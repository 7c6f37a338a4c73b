package digest

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/outbox/templates/locale"
)

type storedKind struct {
	api.DigestKind
	Version int `json:"version"`
}

// Kinds are the settings of categories.
type Kinds struct {
	b      *base
	store  *records.Store[storedKind]
	cached *redisdb.Cache[map[string]*api.DigestKind]
}

func newKinds(b *base) *Kinds {
	k := &Kinds{b: b}
	k.store = records.New(b.DB, nil, records.Kind[storedKind]{
		Key: "digest-kind", Index: "digest-kinds", Name: "digest kind", Code: "DigestKindChanged",
		Missing: func(id string) error {
			account, category := readKindID(id)
			return fault.New(fault.NotFound, "DigestKindNotFound", "Account %[2]q has no settings for the "+
				"digest category %[1]q", category,
				account)
		},
		Secrets: func(*storedKind) []records.Secret { return nil },
	}, records.Options[storedKind]{Now: b.opts.Now, Forget: func(string) { k.cached.Clear() }})
	k.cached = redisdb.NewCache[map[string]*api.DigestKind](b.DB, k.store.VersionKey(), nil)
	return k
}

// kindID names the record of a kind.
func kindID(account, category string) string { return account + "/" + url.QueryEscape(category) }

func readKindID(id string) (account, category string) {
	account, category, _ = strings.Cut(id, "/")
	category, _ = url.QueryUnescape(category) // written by kindID
	return account, category
}

// of returns an account's kinds by category, as they were at most a second ago.
func (k *Kinds) of(ctx context.Context, account string) (map[string]*api.DigestKind, error) {
	all, _, err := k.cached.Get(ctx, account, time.Now(), func(ctx context.Context) (map[string]*api.DigestKind,
		bool, error) {
		all := map[string]*api.DigestKind{}
		err := k.store.Each(ctx, func(r *records.Record[storedKind]) error {
			if kind := r.Value.DigestKind; kind.Account == account {
				all[kind.Category] = &kind
			}
			return nil
		})
		return all, err == nil, err
	})
	return all, err
}

// Create stores a new kind. If there is one of the category: Conflict, code DigestKindExists.
func (k *Kinds) Create(ctx context.Context, bound string, in api.DigestKind) (api.DigestKindInfo, error) {
	account, err := k.b.requestAccount(ctx, bound, in.Account)
	if err != nil {
		return api.DigestKindInfo{}, err
	}
	in.Account = account
	if err := k.check(ctx, in); err != nil {
		return api.DigestKindInfo{}, err
	}
	id := kindID(account, in.Category)
	_, err = k.store.Change(ctx, id, func(old *records.Record[storedKind]) (storedKind, error) {
		if old != nil {
			return storedKind{}, fault.New(fault.Conflict, "DigestKindExists",
				"Account %[2]q already has settings for the digest category %[1]q", in.Category, account)
		}
		return storedKind{in, 1}, nil
	})
	if err != nil {
		return api.DigestKindInfo{}, err
	}
	return k.Get(ctx, bound, api.DigestAccount{Account: account}, in.Category)
}

// check returns an error that names every wrong field.
func (k *Kinds) check(ctx context.Context, in api.DigestKind) error {
	var f fault.Fields
	switch n := utf8.RuneCountInString(in.Category); {
	case n == 0:
		f.Add("category", "is required")
	case n > 64 || !utf8.ValidString(in.Category) || strings.ContainsFunc(in.Category, unicode.IsControl):
		f.Add("category", "must have at most 64 characters, without control characters")
	case in.Category == rest:
		f.Add("category", "can't be *, which means all others")
	}
	for tag, title := range in.Title {
		if _, err := language.Parse(tag); err != nil {
			f.Add("title."+tag, "must have a language such as en or pt-BR")
		}
		if n := utf8.RuneCountInString(title); n == 0 || n > 256 || !message.IsLine(title) {
			f.Add("title."+tag, "must have 1 to 256 characters, without control characters")
		}
	}
	if in.Preference != nil {
		_, wrong := k.b.opts.cadenceOf(*in.Preference, "preference")
		f = append(f, wrong...)
		if in.Required && in.Preference.Mode == off {
			f.Add("preference.mode", "can't be off, because the category is required")
		}
	}
	if in.Lane != "" && in.Lane != api.Bulk && in.Lane != api.Transactional {
		f.Add("lane", "must be bulk or transactional")
	}
	if f == nil && in.Template != "" {
		has, err := k.b.HasTemplate(ctx, in.Account, in.Template)
		if err != nil {
			return err
		}
		if !has {
			f.Add("template", "There is no template \"%s\"", in.Template)
		}
	}
	return fault.InvalidFields(f)
}

// Update changes the fields of a kind that the patch has. Waiting events are planned again as they come due.
func (k *Kinds) Update(ctx context.Context, bound, category string, p api.DigestKindPatch) (
	api.DigestKindInfo, error) {
	account, err := k.b.requestAccount(ctx, bound, p.Account)
	if err != nil {
		return api.DigestKindInfo{}, err
	}
	err = k.store.Update(ctx, kindID(account, category), func(old *records.Record[storedKind]) (storedKind,
		error) {
		next := old.Value
		if p.Version != nil && *p.Version != next.Version {
			return next, fault.New(fault.Conflict, "DigestKindChanged",
				"Category %q is now at version %d, not %d. Read it again and repeat your change", category,
				next.Version, *p.Version)
		}
		api.Patch(&next.DigestKind, p)
		next.Version++
		return next, k.check(ctx, next.DigestKind)
	})
	if err != nil {
		return api.DigestKindInfo{}, err
	}
	return k.Get(ctx, bound, api.DigestAccount{Account: account}, category)
}

// Get returns a kind, or NotFound.
func (k *Kinds) Get(ctx context.Context, bound string, q api.DigestAccount, category string) (
	api.DigestKindInfo, error) {
	account, err := k.b.requestAccount(ctx, bound, q.Account)
	if err != nil {
		return api.DigestKindInfo{}, err
	}
	r, err := k.store.Get(ctx, kindID(account, category))
	if err != nil {
		return api.DigestKindInfo{}, err
	}
	return shownKind(r), nil
}

func shownKind(r *records.Record[storedKind]) api.DigestKindInfo {
	return api.DigestKindInfo{DigestKind: r.Value.DigestKind, Version: r.Value.Version, Created: r.Created,
		Updated: r.Updated}
}

// Delete deletes a kind. Its events stay: their category then has no title and no preference.
func (k *Kinds) Delete(ctx context.Context, bound string, q api.DigestAccount, category string) error {
	account, err := k.b.requestAccount(ctx, bound, q.Account)
	if err != nil {
		return err
	}
	return k.store.Delete(ctx, kindID(account, category))
}

// Page returns a page of kinds of one account, or of all.
func (k *Kinds) Page(ctx context.Context, bound string, q api.DigestKindQuery) (api.DigestKindPage, error) {
	account := cmp.Or(q.Account, bound)
	if bound != "" && account != bound {
		return api.DigestKindPage{}, fault.New(fault.NotFound, "AccountNotFound", "There is no account "+
			"%q", account)
	}
	kinds := []api.DigestKindInfo{}
	err := k.store.Each(ctx, func(r *records.Record[storedKind]) error {
		if account == "" || r.Value.Account == account {
			kinds = append(kinds, shownKind(r))
		}
		return nil
	})
	numbers, from, end := q.Of(len(kinds))
	return api.DigestKindPage{PageNumbers: numbers, Kinds: kinds[from:end]}, err
}

// titleOf returns what readers of a language call a category.
func titleOf(k *api.DigestKind, category, tag string) string {
	if k == nil {
		k = &api.DigestKind{}
	}
	for _, name := range []string{tag, baseOf(tag), locale.Find(tag).Tag(), "en"} {
		if title, ok := k.Title[name]; ok {
			return title
		}
	}
	return Readable(category)
}

// Readable returns a category as words, for readers: "New follower" of new_follower and newFollower.
func Readable(category string) string {
	var words []rune
	var last rune
	for _, c := range category {
		switch {
		case strings.ContainsRune("_-./:", c):
			c = ' '
		case unicode.IsUpper(c) && unicode.IsLower(last):
			words = append(words, ' ')
			c = unicode.ToLower(c)
		}
		words, last = append(words, c), c
	}
	text := strings.Join(strings.Fields(string(words)), " ")
	first, size := utf8.DecodeRuneInString(text)
	if text == "" {
		return category
	}
	return string(unicode.ToTitle(first)) + text[size:]
}

// baseOf returns the language of a tag without its region: de of de-AT.
func baseOf(tag string) string {
	base, _, _ := strings.Cut(tag, "-")
	return base
}
