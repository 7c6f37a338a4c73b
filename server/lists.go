package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

// listMailBody is the size limit of bodies with a list: two mails of 512 kB, and what JSON adds to them.
const listMailBody = 4 << 20

type listRoutes struct{ lists *audience.Lists }

type createListInput struct {
	api.AccountQuery
	Body api.List
}

func (l listRoutes) createList(ctx context.Context, in *createListInput) (api.ListInfo, error) {
	return l.lists.Create(ctx, boundTo(ctx), in.Body)
}

func (l listRoutes) listLists(ctx context.Context, in *api.ListQuery) (api.ListPage, error) {
	return l.lists.Page(ctx, boundTo(ctx), *in)
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
