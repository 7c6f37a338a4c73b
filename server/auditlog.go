package server

import (
	"context"
	"io"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/audit"
)

type auditRoutes struct{ log *audit.Log }

// auditSelection are the filters of the audit log.
type auditSelection struct {
	Who     string    `query:"who" maxLength:"256" doc:"Only by this: name of a token, its id or the first 6 digits or more of it, a session, a client's address, of a person, or token, session, person, smtp, anonymous, system"`
	Kind    string    `query:"kind" enum:"account,gateway,dkim,template,token,person,session,endpoint,settings,queue,message,suppression,list,segment,subscriber,campaign,documents" doc:"Only about objects of this kind"`
	ID      string    `query:"id" maxLength:"256" doc:"Only about the object of this id"`
	Account string    `query:"account" maxLength:"256" doc:"Only about what belongs to this account, or by a token bound to it"`
	Result  string    `query:"result" enum:"begun,done,refused,failed" doc:"Only with this result"`
	From    time.Time `query:"from" doc:"Only from this time on"`
	To      time.Time `query:"to" doc:"Only before this time"`
}

func (q auditSelection) query() api.AuditQuery {
	return api.AuditQuery{Who: q.Who, Kind: q.Kind, ID: q.ID, Account: q.Account,
		Result: api.AuditResult(q.Result), From: q.From, To: q.To}
}

type listAuditInput struct {
	auditSelection
	Oldest   string `query:"oldest" enum:"true,false" doc:"true: the oldest first"`
	Cursor   string `query:"cursor" maxLength:"64" doc:"The cursor of an earlier answer: the entries after it. An answer may have no entries, and more nevertheless"`
	PageSize int    `query:"pageSize" minimum:"1" maximum:"1000" doc:"Entries at most; 50 when absent"`
}

func (a auditRoutes) listAudit(ctx context.Context, in *listAuditInput) (api.AuditPage, error) {
	q := in.query()
	q.Oldest, q.Cursor, q.PageSize = in.Oldest == "true", in.Cursor, in.PageSize
	return a.log.List(ctx, q)
}

// lines is a download of JSON lines.
type lines struct{ download }

func (a auditRoutes) exportAudit(ctx context.Context, in *auditSelection) (lines, error) {
	return lines{download{Name: "audit.ndjson", ContentType: "application/x-ndjson",
		Write: func(w io.Writer) error { return a.log.Export(ctx, in.query(), w) }}}, nil
}

type verifyAuditInput struct {
	Seq  int    `query:"seq" minimum:"1" doc:"Number of an entry that the log had, such as a former head; hash is needed too"`
	Hash string `query:"hash" pattern:"^[0-9a-f]{64}$" doc:"Its hash"`
}

func (a auditRoutes) verifyAudit(ctx context.Context, in *verifyAuditInput) (api.AuditVerified, error) {
	if (in.Seq == 0) != (in.Hash == "") {
		return api.AuditVerified{}, invalid("hash", "and seq are needed together")
	}
	return a.log.Verify(ctx, api.AuditHead{Seq: int64(in.Seq), Hash: in.Hash})
}
