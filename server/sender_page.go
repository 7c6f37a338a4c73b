package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/accounts/senders"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
)

// senderPages are the public pages on which the owner of an address lets an account send as it. Their token
// is in the mail to that address.
type senderPages struct {
	proofs *senders.Proofs
	wrong  *wrongProofs
	pages  *publicPages
	audit  *audit.Log
	look   audit.Look
	log    *slog.Logger
}

// ask shows the page with one button. It changes nothing, because link scanners follow every link of a mail.
func (p senderPages) ask(c echo.Context) error {
	token := c.QueryParam("t")
	visit, err := p.proofs.Read(c.Request().Context(), token)
	if err != nil {
		return p.failed(c, err)
	}
	v := p.view(c, "askSender", "askSenderText")
	v.Facts = p.facts(v, visit)
	v.Button = &pageButton{To: "sender", Action: "confirm", Token: token, Text: v.W["confirmSender"]}
	return p.pages.show(c, http.StatusOK, v)
}

// confirm handles the button. Its entries in the audit log are an unauthenticated client's.
func (p senderPages) confirm(c echo.Context) error {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, requestBody)
	if r.ParseForm() != nil || r.PostForm.Get("action") != "confirm" {
		return fault.New(fault.Invalid, "", "The body must be the form of the page")
	}
	ctx := r.Context()
	visit, err := p.proofs.Read(ctx, r.PostForm.Get("t"))
	if err != nil {
		return p.failed(c, err)
	}
	var anonymous *access.Grant
	err = p.audit.Do(ctx, audit.Change{
		Who: anonymous.Actor(peers.Of(r).String()), Action: "POST " + senders.Path, Request: requestID(c),
		Asked: map[string]string{"sender": visit.Address}, Look: p.look,
		Object: api.AuditObject{Kind: "account", ID: visit.Account, Account: visit.Account},
	}, func(ctx context.Context) (any, error) { return p.proofs.Prove(ctx, visit) })
	if err != nil {
		return p.failed(c, err)
	}
	v := p.view(c, "senderConfirmed", "senderConfirmedText")
	v.Facts = p.facts(v, visit)
	return p.pages.show(c, http.StatusOK, v)
}

func (p senderPages) view(c echo.Context, title, text string) publicView {
	lang := p.pages.language(c.Request(), "")
	words := p.pages.words[lang]
	return publicView{Lang: lang, W: words, Title: words[title], Text: []string{words[text]}}
}

func (p senderPages) facts(v publicView, visit senders.Visit) []pageFact {
	all := []pageFact{{v.W["account"], visit.Name}, {v.W["yourAddress"], visit.Address}}
	if base := p.proofs.URL(); base != "" {
		all = append(all, pageFact{v.W["service"], base})
	}
	return all
}

// failed says why nothing was changed.
func (p senderPages) failed(c echo.Context, err error) error {
	if fault.CodeOf(err) == "UnknownLink" {
		if limited := p.wrong.tooMany(c); limited != nil {
			return limited
		}
	}
	if fault.Is(err, fault.NotFound) {
		return p.pages.show(c, http.StatusNotFound, p.view(c, "senderOver", "senderOverText"))
	}
	p.log.Error("sender not verified", "request_id", requestID(c), "error", err)
	c.Response().Header().Set("Retry-After", "60")
	return p.pages.show(c, http.StatusServiceUnavailable, p.view(c, "failed", "failedText"))
}
