package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

// listMailBody is the size limit of bodies with a list: two mails of 512 kB, and what JSON adds to them.
const listMailBody = 4 << 20

type listRoutes struct{ lists *audience.Lists }

// accountQuery names the account of a request.
type accountQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Whose; when absent that of the token, else default"`
}

// named returns the account of a request that may have it in its query, its body, or both.
func (q accountQuery) named(body string) (string, error) {
	switch {
	case q.Account == "", q.Account == body:
		return body, nil
	case body == "":
		return q.Account, nil
	}
	return "", invalid("account", "is not the same in the query and the body")
}

type createListInput struct {
	accountQuery
	Body api.List
}

func (l listRoutes) createList(ctx context.Context, in *createListInput) (api.ListInfo, error) {
	account, err := in.named(in.Body.Account)
	if err != nil {
		return api.ListInfo{}, err
	}
	in.Body.Account = account
	return l.lists.Create(ctx, boundTo(ctx), in.Body)
}

type listListsInput struct {
	pageInput
	Account string `query:"account" maxLength:"256" doc:"Only lists of this account; when absent that of the token, else all"`
}

func (l listRoutes) listLists(ctx context.Context, in *listListsInput) (api.ListPage, error) {
	return l.lists.Page(ctx, boundTo(ctx), api.ListQuery{Account: in.Account,
		PageQuery: api.PageQuery{Page: in.Page, PageSize: in.size()}})
}

type listInput struct {
	ListID string `path:"listId" maxLength:"63" doc:"Id of the list"`
}

func (l listRoutes) getList(ctx context.Context, in *listInput) (api.ListInfo, error) {
	return l.lists.Get(ctx, boundTo(ctx), in.ListID)
}

type updateListInput struct {
	listInput
	Body api.ListPatch
}

func (l listRoutes) updateList(ctx context.Context, in *updateListInput) (api.ListInfo, error) {
	return l.lists.Update(ctx, boundTo(ctx), in.ListID, in.Body)
}

func (l listRoutes) deleteList(ctx context.Context, in *listInput) (api.Deleted, error) {
	deleted, err := l.lists.Delete(ctx, boundTo(ctx), in.ListID)
	return api.Deleted{Deleted: deleted}, err
}
