package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox"
)

// listMessages shows the email log. A bound token sees the messages of its account.
func (m messageRoutes) listMessages(ctx context.Context, in *api.LogQuery) (_ api.LogPage, err error) {
	if in.Account, err = ownAccount(ctx, in.Account); err != nil {
		return api.LogPage{}, err
	}
	return m.box.Reader.Messages(ctx, *in)
}

// getRates returns mail counters. A bound token gets its account's.
func (m messageRoutes) getRates(ctx context.Context, in *api.RatesQuery) (_ api.Rates, err error) {
	if in.Account, err = ownAccount(ctx, in.Account); err != nil {
		return api.Rates{}, err
	}
	return m.box.Counts.Rates(ctx, *in)
}

func (m messageRoutes) getLogged(ctx context.Context, in *messageInput) (api.LoggedMessage, error) {
	if err := m.mineLogged(ctx, in.QueueID); err != nil {
		return api.LoggedMessage{}, err
	}
	found, err := m.box.Reader.Message(ctx, in.QueueID)
	return found, logged(err)
}

func (m messageRoutes) listEvents(ctx context.Context, in *messageInput) (api.MessageEvents, error) {
	if err := m.mineLogged(ctx, in.QueueID); err != nil {
		return api.MessageEvents{}, err
	}
	found, err := m.box.Reader.MessageEvents(ctx, in.QueueID)
	return found, logged(err)
}

func (m messageRoutes) mail(ctx context.Context, id string) ([]byte, error) {
	if err := m.mineLogged(ctx, id); err != nil {
		return nil, err
	}
	raw, err := m.box.Reader.Mail(ctx, id)
	if fault.CodeOf(err) == outbox.ContentNotKept {
		return nil, err
	}
	return raw, logged(err)
}

func (m messageRoutes) downloadMessage(ctx context.Context, in *messageInput) (file, error) {
	raw, err := m.mail(ctx, in.QueueID)
	return file{ContentType: "message/rfc822", Name: "message.eml", Content: raw}, err
}

func (m messageRoutes) getParts(ctx context.Context, in *messageInput) (api.MessageParts, error) {
	raw, err := m.mail(ctx, in.QueueID)
	if err != nil {
		return api.MessageParts{}, err
	}
	read := message.Parse(raw)
	out := api.MessageParts{Size: read.Size, Partial: read.Partial}
	for _, f := range read.Headers {
		out.Headers = append(out.Headers, api.HeaderField(f))
	}
	for _, p := range read.Parts {
		out.Parts = append(out.Parts, api.MessagePart{Part: p.Number, ContentType: p.Type, Filename: p.Name,
			ContentID: p.CID, File: p.File, Size: p.Size, Text: p.Text, Cut: p.Cut})
	}
	return out, nil
}

type messagePartInput struct {
	messageInput
	Part int `path:"part" minimum:"1" doc:"Number of the part in the list of parts"`
}

// part is a part of a message as an answer. Its bytes come from anybody, so no browser shows them.
type part struct{ message.Part }

func (p part) send(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderContentDisposition, p.Disposition())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	return c.Blob(http.StatusOK, echo.MIMEOctetStream, p.Content)
}

func (m messageRoutes) downloadPart(ctx context.Context, in *messagePartInput) (part, error) {
	raw, err := m.mail(ctx, in.QueueID)
	if err != nil {
		return part{}, err
	}
	found, ok := message.OpenPart(raw, in.Part)
	if !ok {
		return part{}, fault.New(fault.NotFound, "PartNotFound",
			"The message has no part %d; GET /v1/messages/%s/parts lists them", in.Part, in.QueueID)
	}
	return part{found}, nil
}

func (m messageRoutes) mineLogged(ctx context.Context, id string) error {
	return logged(m.mine(ctx, id))
}

// logged gives each NotFound the same text, so that messages that never existed, expired messages and other
// accounts' messages look the same.
func logged(err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.New(fault.NotFound, "MessageNotFound", "There is no such message in the email log")
}
