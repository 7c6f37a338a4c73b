package server

import (
	"context"
	"io"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

type subscriberImportRoutes struct{ audience *audience.Subscribers }

// importSubscribersInput are the parameters of an import; see api.SubscriberImportOptions.
type importSubscribersInput struct {
	accountQuery
	ID          string   `query:"id" maxLength:"63" doc:"An id that you choose, for reading the progress during the upload. The same file with the same id goes on where an interrupted import was"`
	ListID      []string `query:"listId" maxLength:"63" doc:"A list to put all subscribers on. Repeat it for more"`
	State       string   `query:"state" enum:"subscribed,pending,left" doc:"On these lists; subscribed when absent, which needs consent. left also stops their mail"`
	Consent     string   `query:"consent" maxLength:"500" doc:"The words that all of them agreed to"`
	Confirm     string   `query:"confirm" enum:"true,false" doc:"true: with state pending, a mail asks each of them for the confirmation"`
	Existing    string   `query:"existing" enum:"merge,skip,replace" doc:"What happens to subscribers that are there already: merge (when absent) changes what a line has, replace also empties the rest, skip leaves them as they are, with their lists"`
	Columns     string   `query:"columns" maxLength:"16384" doc:"Of CSV: what its columns are, such as Mail:email,Seats:attributes.seats:number. Types are string, number, bool, date and list. state, subscribed or unsubscribed: the column tells who has unsubscribed. When absent, the headings say it"`
	Delimiter   string   `query:"delimiter" maxLength:"3" doc:"Of CSV: one of , ; | and tab. Guessed when absent"`
	Charset     string   `query:"charset" enum:"utf-8,utf-16le,utf-16be,windows-1252" doc:"Guessed when absent"`
	Tag         string   `query:"tag" maxLength:"64" doc:"A tag that all of them get"`
	Resubscribe string   `query:"resubscribe" enum:"true,false" doc:"true: with consent, who left is subscribed again. After a bounce or a complaint not even then"`
	DryRun      string   `query:"dryRun" enum:"true,false" doc:"true: nothing is changed; the answer is what would be"`

	File  io.Reader // the body
	Size  int64     // of the body; less than 1: unknown
	Media string    // of the body
}

func (s subscriberImportRoutes) importSubscribers(ctx context.Context, in *importSubscribersInput) (
	api.SubscriberImport, error) {
	return s.audience.Imports.Run(ctx, boundTo(ctx), in.File, api.SubscriberImportOptions{
		ID: in.ID, Account: in.Account, ListID: in.ListID, State: in.State, Consent: in.Consent,
		Confirm: in.Confirm == "true", Existing: in.Existing, Columns: in.Columns, Delimiter: in.Delimiter,
		Charset: in.Charset, Tag: in.Tag, Resubscribe: in.Resubscribe == "true", DryRun: in.DryRun == "true",
		JSONL: in.Media == mediaJSONL, Size: max(0, in.Size),
	})
}

type listImportsInput struct{ accountQuery }

func (s subscriberImportRoutes) listImports(ctx context.Context, in *listImportsInput) (api.SubscriberImports,
	error) {
	return s.audience.Imports.List(ctx, boundTo(ctx), api.SubscriberAccount{Account: in.Account})
}

type subscriberImportInput struct {
	accountQuery
	importInput
}

func (s subscriberImportRoutes) getImport(ctx context.Context, in *subscriberImportInput) (
	api.SubscriberImport, error) {
	return s.audience.Imports.Get(ctx, boundTo(ctx), api.SubscriberAccount{Account: in.Account}, in.ID)
}

func (s subscriberImportRoutes) stopImport(ctx context.Context, in *subscriberImportInput) (api.Deleted,
	error) {
	done, err := s.audience.Imports.Stop(ctx, boundTo(ctx), api.SubscriberAccount{Account: in.Account}, in.ID)
	return api.Deleted{Deleted: done}, err
}

type exportSubscribersInput struct {
	subscriberSelection
	Format string `query:"format" enum:"csv,jsonl" doc:"csv when absent"`
}

func (s subscriberImportRoutes) exportSubscribers(ctx context.Context, in *exportSubscribersInput) (download,
	error) {
	bound := boundTo(ctx)
	d := download{Name: "subscribers.csv", ContentType: "text/csv; charset=utf-8"}
	if in.Format == "jsonl" {
		d.Name, d.ContentType = "subscribers.jsonl", mediaJSONL
	}
	d.Write = func(w io.Writer) error {
		return s.audience.Export(ctx, bound, api.SubscriberExportQuery{SubscriberQuery: in.query(),
			Format: in.Format}, w)
	}
	return d, nil
}
