package suppression

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// blockReason is EmailEngine's word for a missing reason.
const blockReason = "block"

// Lists returns the number of entries of each list that has some, by id. Pages count from 0; size is 1 to
// 1,000, zero means 20.
func (s *Store) Lists(ctx context.Context, page, size int) (api.Blocklists, error) {
	counts, err := s.Counts(ctx)
	if err != nil {
		return api.Blocklists{}, err
	}
	var all []api.Blocklist
	for _, c := range counts {
		if c.List == "" {
			continue
		}
		if n := len(all); n > 0 && all[n-1].ListID == c.List {
			all[n-1].Count += int(c.Entries)
			continue
		}
		all = append(all, api.Blocklist{ListID: c.List, Count: int(c.Entries)})
	}
	slices.SortFunc(all, func(a, b api.Blocklist) int { return cmp.Compare(a.ListID, b.ListID) })
	size = pageSize(size)
	from := min(page*size, len(all))
	return api.Blocklists{
		Total: len(all), Page: page, Pages: pages(len(all), size), Blocklists: append([]api.Blocklist{},
			all[from:min(from+size, len(all))]...),
	}, nil
}

// Blocklist returns a page of the entries of a list. A page far into a large list costs reading all before
// it; [Store.Query] has cursors.
func (s *Store) Blocklist(ctx context.Context, list string, page, size int) (api.BlocklistPage, error) {
	f := Filter{List: list}
	total, err := s.CountOf(ctx, f)
	if err == nil && total == 0 {
		err = fault.New(fault.NotFound, "ListNotFound", "Requested blocklist was not found")
	}
	if err != nil {
		return api.BlocklistPage{}, err
	}
	size = pageSize(size)
	out := api.BlocklistPage{ListID: strings.ToLower(list), Total: int(total), Page: page,
		Pages:     pages(int(total), size),
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
			Account: e.AskedFor, RemoteAddress: e.RemoteAddress, UserAgent: e.UserAgent,
			MessageID: e.MessageID, Created: e.Created, Expires: orNil(e.Expires)}
	}
	return rows
}

// Block adds an address to a list, with EmailEngine's fields. An unknown reason becomes the response of a
// manual entry.
func (s *Store) Block(ctx context.Context, list string, req api.BlocklistRequest) (api.BlocklistAdded,
	error) {
	e := Entry{Address: req.Recipient, List: list, Reason: reasonNamed(req.Reason), Source: "api",
		AskedFor: req.Account}
	if !e.Reason.Valid() {
		e.Reason, e.Response = Manual, req.Reason
	}
	e, wrong := e.Normal("", s.now())
	for i := range wrong {
		wrong[i].Key = strings.NewReplacer("address", "recipient", "list", "listId").Replace(wrong[i].Key)
	}
	if len(wrong) > 0 {
		return api.BlocklistAdded{}, fault.InvalidFields(wrong)
	}
	added, err := s.add(ctx, []Entry{e}, s.now())
	return api.BlocklistAdded{Success: err == nil, Added: added > 0}, err
}

// Unblock removes an address, or @ and a domain, from a list.
func (s *Store) Unblock(ctx context.Context, list, recipient string) (api.SuppressionRemoved, error) {
	e := Entry{Address: recipient, List: list}
	if domain, ok := strings.CutPrefix(recipient, "@"); ok {
		e.Address, e.Domain = "", domain
	}
	removed, err := s.Remove(ctx, e)
	return api.SuppressionRemoved{Deleted: removed}, err
}

func pageSize(size int) int {
	if size = min(size, maxPage); size < 1 {
		return defaultPage
	}
	return size
}

func pages(total, size int) int { return max(1, (total+size-1)/size) }
