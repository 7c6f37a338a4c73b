package suppression

import (
	"cmp"
	"context"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// blockReason is EmailEngine's word for a missing reason.
const blockReason = "block"

// Lists returns the number of entries of each list that has some, by id and account. Pages count from 0; size
// is 1 to 1,000, zero means 20.
func (s *Store) Lists(ctx context.Context, bound string, page, size int) (api.Blocklists, error) {
	counts, err := s.Counts(ctx)
	if err != nil {
		return api.Blocklists{}, err
	}
	var all []api.Blocklist
	for _, c := range counts {
		if c.List == "" || bound != "" && c.Account != bound {
			continue
		}
		if n := len(all); n > 0 && all[n-1].ListID == c.List && all[n-1].Account == c.Account {
			all[n-1].Count += int(c.Entries)
			continue
		}
		all = append(all, api.Blocklist{ListID: c.List, Account: c.Account, Count: int(c.Entries)})
	}
	numbers, from, end := pageOf(page, size, len(all))
	return api.Blocklists{PageNumbers: numbers, Blocklists: append([]api.Blocklist{}, all[from:end]...)}, nil
}

// Blocklist returns a page of a list's entries. If account is empty and the caller is not confined, it
// returns entries of all accounts' lists with this id. A page far into a large list costs reading all before
// it; [Store.Query] has cursors.
func (s *Store) Blocklist(ctx context.Context, bound, account, list string, page, size int) (
	api.BlocklistPage, error) {
	f, err := filterOf(bound, api.SuppressionQuery{Account: account, List: list})
	if err != nil {
		return api.BlocklistPage{}, err
	}
	total, err := s.CountOf(ctx, f)
	if err == nil && total == 0 {
		err = fault.New(fault.NotFound, "ListNotFound", "Requested blocklist was not found")
	}
	if err != nil {
		return api.BlocklistPage{}, err
	}
	numbers, _, _ := pageOf(page, size, int(total))
	out := api.BlocklistPage{ListID: strings.ToLower(list), PageNumbers: numbers,
		Addresses: []api.BlocklistAddress{}}
	cursor := ""
	for n := 0; n <= page && page < out.Pages; n++ {
		got, err := s.List(ctx, f, cursor, size)
		if err != nil {
			return api.BlocklistPage{}, err
		}
		if n == page {
			out.Addresses = blocklistRows(got.Entries)
		}
		if cursor = got.Next; cursor == "" {
			break
		}
	}
	return out, nil
}

func blocklistRows(entries []Entry) []api.BlocklistAddress {
	rows := make([]api.BlocklistAddress, len(entries))
	for i, e := range entries {
		reason := string(e.Reason)
		if e.Reason == Manual {
			reason = cmp.Or(e.Response, blockReason)
		}
		rows[i] = api.BlocklistAddress{Recipient: e.subject(), Source: e.Source, Reason: reason,
			Account: e.Account, RemoteAddress: e.RemoteAddress, UserAgent: e.UserAgent,
			MessageID: e.MessageID, Created: e.Created, Expires: orNil(e.Expires)}
	}
	return rows
}

// Block adds an address to a list of an account, with EmailEngine's fields. An unknown reason becomes the
// response of a manual entry.
func (s *Store) Block(ctx context.Context, bound, list string, req api.BlocklistRequest) (
	api.BlocklistAdded, error) {
	e := Entry{Address: req.Recipient, Account: cmp.Or(req.Account, bound), List: list,
		Reason: reasonNamed(req.Reason), Source: "api"}
	if err := mayChange(bound, e.Account); err != nil {
		return api.BlocklistAdded{}, err
	}
	if !e.Reason.Valid() {
		e.Reason, e.Response = Manual, req.Reason
	}
	e, wrong := e.Normal("", s.now())
	if len(wrong) > 0 {
		return api.BlocklistAdded{}, fault.InvalidFields(asBlocked(wrong))
	}
	if err := s.hasRoom(ctx, []Entry{e}); err != nil {
		return api.BlocklistAdded{}, err
	}
	added, err := s.add(ctx, []Entry{e}, s.now())
	return api.BlocklistAdded{Success: err == nil, Added: added > 0}, err
}

// asBlocked gives the fields of an entry the names that they have in EmailEngine's requests.
func asBlocked(wrong []fault.Field) []fault.Field {
	names := map[string]string{"address": "recipient", "domain": "recipient", "list": "listId"}
	for i, f := range wrong {
		wrong[i].Key = cmp.Or(names[f.Key], f.Key)
	}
	return wrong
}

// Unblock removes an address, or @ and a domain, from a list. Without an account the caller may mean any: the
// entry is removed then if only one account has such a list with it.
func (s *Store) Unblock(ctx context.Context, bound, account, list, recipient string) (
	api.SuppressionRemoved, error) {
	e := Entry{Address: recipient, Account: cmp.Or(account, bound), List: list, Reason: Manual}
	if domain, ok := strings.CutPrefix(recipient, "@"); ok {
		e.Address, e.Domain = "", domain
	}
	if err := mayChange(bound, e.Account); err != nil {
		return api.SuppressionRemoved{}, err
	}
	if e.Account == "" {
		var err error
		if e.Account, err = s.soleOwner(ctx, e); err != nil || e.Account == "" {
			return api.SuppressionRemoved{}, err
		}
	}
	e.Reason = ""
	removed, err := s.Remove(ctx, e)
	return api.SuppressionRemoved{Deleted: removed}, err
}

// soleOwner returns the only account that has a list with an entry, and "" if none has. It is an error if
// several have.
func (s *Store) soleOwner(ctx context.Context, e Entry) (owner string, _ error) {
	e.Account = "any"
	e, wrong := e.Normal("", s.now())
	if len(wrong) > 0 {
		return "", fault.InvalidFields(asBlocked(wrong))
	}
	rows, err := s.rowsOf(ctx, e.subject())
	for _, r := range rows {
		account, list := parseScope(r.scope)
		switch {
		case list != e.List:
		case owner != "" && owner != account:
			return "", fault.InvalidField("account", "is required, because several accounts have such a "+
				"list with this recipient")
		default:
			owner = account
		}
	}
	return owner, err
}

// pageOf returns a page of a list: an empty list has one, too.
func pageOf(page, size, total int) (numbers api.PageNumbers, from, end int) {
	numbers, from, end = api.PageQuery{Page: page, PageSize: size}.Of(total)
	numbers.Pages = max(1, numbers.Pages)
	return numbers, from, end
}
