package server

import (
	"bytes"
	"context"
	"mime"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/bounce"
)

// returnedBody is the size limit of a mail that came back. It may contain a large message, which is not read.
const returnedBody = 50 << 20

// mailBody is a body that is an email, not JSON.
type mailBody []byte

type returnMailInput struct {
	api.ReturnOptions
	Body mailBody
}

func (f feedbackRoutes) returnMail(ctx context.Context, in *returnMailInput) (api.ReturnedMail, error) {
	report, out, err := f.bounces.Receive(ctx, bytes.NewReader(in.Body), in.EnvelopeTo)
	return returnedMail(report, out), err
}

// returnedMail returns a report and its outcome as a type of the API.
func returnedMail(r bounce.Report, out feedback.Outcome) api.ReturnedMail {
	m := api.ReturnedMail{
		Kind: string(r.Kind), Form: r.Form, Result: string(out.Result), Proof: string(out.Proof),
		QueueID: out.MessageID, MessageID: r.Original.MessageID,
		ReportingMTA: r.ReportingMTA, Recipients: make([]api.ReturnedRecipient, len(r.Recipients)),
		About: out.Recipients, Truncated: r.Truncated,
	}
	if r.Feedback != nil {
		m.FeedbackType = r.Feedback.Type
	}
	for i, rcpt := range r.Recipients {
		m.Recipients[i] = api.ReturnedRecipient{
			Address: rcpt.Address, Original: rcpt.Original, Action: string(rcpt.Action), Status: rcpt.Status,
			Code: rcpt.Code, Diagnostic: rcpt.Diagnostic,
			MTA: rcpt.RemoteMTA, Verdict: string(rcpt.Verdict), Suppress: rcpt.Suppress,
		}
	}
	return m
}

func readMail(c echo.Context, m *capacity, limit int64) (mailBody, error) {
	if value := c.Request().Header.Get(echo.HeaderContentType); value != "" {
		media, _, err := mime.ParseMediaType(value)
		if err != nil || media != "message/rfc822" && media != "message/global" {
			return nil, echo.NewHTTPError(http.StatusUnsupportedMediaType, "The body must be message/rfc822")
		}
	}
	body, err := rawBody(c, m, limit)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, fault.New(fault.Invalid, "", "The request has no body; an RFC 5322 message is expected")
	}
	return body, m.acquire(c.Request().Context())
}
