package server

import (
	"context"
	"io"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/audit"
)

type auditRoutes struct{ log *audit.Log }

// lines is a download of JSON lines.
type lines struct{ download }

func (a auditRoutes) exportAudit(ctx context.Context, in *api.AuditQuery) (lines, error) {
	return lines{download{Name: "audit.ndjson", ContentType: "application/x-ndjson",
		Write: func(w io.Writer) error { return a.log.Export(ctx, *in, w) }}}, nil
}

func (a auditRoutes) verifyAudit(ctx context.Context, in *api.AuditVerifyQuery) (api.AuditVerified, error) {
	if (in.Seq == 0) != (in.Hash == "") {
		return api.AuditVerified{}, invalid("hash", "and seq are needed together")
	}
	return a.log.Verify(ctx, api.AuditHead{Seq: in.Seq, Hash: in.Hash})
}
