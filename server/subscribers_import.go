package server

import (
	"context"
	"io"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

type subscriberImportRoutes struct{ audience *audience.Subscribers }

type importSubscribersInput struct {
	api.SubscriberImportOptions
	File  io.Reader // the body
	Size  int64     // the body's; less than 1 if unknown
	Media string    // the body's
}

func (s subscriberImportRoutes) importSubscribers(ctx context.Context, in *importSubscribersInput) (
	api.SubscriberImport, error) {
	o := in.SubscriberImportOptions
	o.JSONL, o.Size = in.Media == mediaJSONL, max(0, in.Size)
	return s.audience.Imports.Run(ctx, boundTo(ctx), in.File, o)
}

type subscriberImportInput struct {
	api.AccountQuery
	importInput
}

func (in subscriberImportInput) key() (api.AccountQuery, string) { return in.AccountQuery, in.ID }

func (s subscriberImportRoutes) stopImport(ctx context.Context, in *subscriberImportInput) (api.Deleted,
	error) {
	done, err := s.audience.Imports.Stop(ctx, boundTo(ctx), in.AccountQuery, in.ID)
	return api.Deleted{Deleted: done}, err
}

func (s subscriberImportRoutes) exportSubscribers(ctx context.Context, in *api.SubscriberExportQuery) (
	download, error) {
	bound := boundTo(ctx)
	d := download{Name: "subscribers.csv", ContentType: "text/csv; charset=utf-8"}
	if in.Format == "jsonl" {
		d.Name, d.ContentType = "subscribers.jsonl", mediaJSONL
	}
	d.Write = func(w io.Writer) error { return s.audience.Export(ctx, bound, *in, w) }
	return d, nil
}
