package suppression

import (
	"context"
	"io"
	"time"

	"github.com/postroom/postroom/api"
)

// Export writes all entries of a query as CSV with headings, in the form that [Store.Import] reads. It writes
// while it reads, so the file may have any size. Entries added or removed meanwhile may be in it or not.
// Expired ones are omitted. No cell begins as a formula of a spreadsheet: see [api.CSVCell].
func (s *Store) Export(ctx context.Context, bound string, q api.SuppressionQuery, w io.Writer) error {
	f, err := filterOf(bound, q)
	if err != nil {
		return err
	}
	if f, err = f.normal(); err != nil {
		return err
	}
	file := api.NewCSVWriter(w)
	if err := file.Write(exportHeadings[:]); err != nil {
		return err
	}
	now := s.now()
	err = s.Walk(ctx, f, func(e Entry) error {
		if !e.Expires.IsZero() && !e.Expires.After(now) {
			return nil
		}
		expires := ""
		if !e.Expires.IsZero() {
			expires = e.Expires.Format(time.RFC3339)
		}
		return file.Write([]string{
			e.Address, e.Domain, string(e.Reason), e.Account, e.List, expires, e.Source,
			e.Created.Format(time.RFC3339), e.MessageID, e.Response,
		})
	})
	if err != nil {
		return err
	}
	return file.Flush()
}
