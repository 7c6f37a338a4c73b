package api

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
)

// ReturnMail hands over a mail that came back, a bounce, a delay notice or a complaint, as it is (RFC 5322). The address is the one it came to; empty:
// its header is looked at. What it proves is durable when the error is nil; what it does not prove is no error, and changes nothing.
func (c *Client) ReturnMail(ctx context.Context, mail []byte, envelopeTo string) (m ReturnedMail, err error) {
	q := url.Values{}
	if envelopeTo != "" {
		q.Set("envelopeTo", envelopeTo)
	}
	return m, c.do(ctx, call{method: http.MethodPost, path: "/v1/bounces", query: q, body: bytes.NewReader(mail), kind: "message/rfc822", out: &m})
}
