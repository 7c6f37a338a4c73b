package ui

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// handler handles a route. Its error is shown as a page.
type handler func(w http.ResponseWriter, r *http.Request) error

// routes is the table of all pages.
func (u *UI) routes() *http.ServeMux {
	mux := http.NewServeMux()
	open := func(pattern string, h handler) { mux.Handle(pattern, u.answer(h)) }
	closed := func(pattern string, h handler) { mux.Handle(pattern, u.answer(u.guard(h))) }
	// changes are in the audit log, with the kind of the objects
	changes := func(pattern, kind string, h handler) { closed(pattern, audits{u}.logged(pattern, kind, h)) }

	open("GET /static/{name}", u.file)
	open("GET /login", u.loginPage)
	open("POST /login", u.login)
	open("POST /logout", u.logout)

	closed("GET /{$}", outboxPage{u}.outbox)
	closed("GET /log", u.logPage)
	closed("GET /search", u.searchPage)
	closed("GET /cancel", u.confirmCancel)
	changes("POST /cancel", "message", u.cancelAll)
	closed("GET /replay", u.confirmReplay)
	changes("POST /replay", "message", u.replayAll)
	changes("POST /queues/{queue}/pause", "queue", outboxPage{u}.pause)
	changes("POST /queues/{queue}/resume", "queue", outboxPage{u}.resume)
	closed("GET /messages/{id}", onMessage(u.message))
	closed("GET /messages/{id}/content", onMessage(u.content))
	changes("POST /messages/{id}/cancel", "message", onMessage(u.cancel))
	changes("POST /messages/{id}/retry", "message", onMessage(u.retry))
	changes("POST /messages/{id}/reschedule", "message", onMessage(u.reschedule))
	changes("POST /messages/{id}/replay", "message", onMessage(u.replay))
	closed("GET /webhooks", webhookPages{u}.webhooks)
	closed("GET /webhooks/{id}", onEndpoint(webhookPages{u}.endpoint))
	changes("POST /webhooks/{id}/test", "endpoint", onEndpoint(webhookPages{u}.testEndpoint))
	changes("POST /webhooks/{id}/deliveries/{delivery}/redeliver", "endpoint",
		onEndpoint(webhookPages{u}.redeliver))
	closed("GET /accounts", u.accounts)
	closed("GET /gateways", u.gateways)
	closed("GET /templates", templatePages{u}.templates)
	closed("GET /templates/{id}", templatePages{u}.template)
	closed("GET /templates/{id}/preview", templatePages{u}.templateFrame)
	changes("POST /templates/{id}/restore", "template", templatePages{u}.restoreTemplate)
	closed("GET /suppressions", suppressionPages{u}.suppressions)
	changes("POST /suppressions/add", "suppression", suppressionPages{u}.addSuppression)
	changes("POST /suppressions/remove", "suppression", suppressionPages{u}.removeSuppression)
	changes("POST /suppressions/import", "suppression", suppressionPages{u}.importSuppressions)
	closed("GET /suppressions/imports/{id}", suppressionPages{u}.suppressionImport)
	closed("GET /rates", u.rates)
	u.adminRoutes(closed)
	closed("GET /status", u.status)
	closed(DashboardPath, u.dashboard)
	closed(DashboardPath+"/", u.dashboard)
	closed("/", noPage)
	return mux
}

// adminRoutes are the pages for those with the right to change settings.
func (u *UI) adminRoutes(closed func(pattern string, h handler)) {
	shows := func(pattern string, h handler) { closed(pattern, forAdmins(h)) }
	changes := func(pattern, kind string, h handler) { shows(pattern, audits{u}.logged(pattern, kind, h)) }

	shows("GET /settings", settingsPage{u}.settings)
	changes("POST /settings", "settings", settingsPage{u}.changeSettings)
	shows("GET /tokens", tokenPages{u}.tokens)
	changes("POST /tokens", "token", tokenPages{u}.createToken)
	changes("POST /tokens/{id}/rotate", "token", tokenPages{u}.rotateToken)
	changes("POST /tokens/{id}/delete", "token", tokenPages{u}.deleteToken)
	shows("GET /audit", audits{u}.page)
}

// mounted are the paths of the table as echo writes them.
var mounted = []string{
	"/", "/static/*", "/login", "/logout", "/log", "/search", "/cancel", "/replay", "/queues/*", "/messages/*",
	"/webhooks", "/webhooks/*", "/accounts", "/gateways", "/templates", "/templates/*", "/suppressions",
	"/suppressions/*", "/rates", "/settings", "/tokens", "/tokens/*", "/audit", "/status",
	DashboardPath, DashboardPath + "/*",
}

// Mount adds the pages to the routes of an echo. Browsers get a page for unknown paths; programs get echo's
// own answer.
func (u *UI) Mount(e *echo.Echo) {
	serve := echo.WrapHandler(u)
	for _, path := range mounted {
		e.Any(path, serve)
	}
	e.RouteNotFound("/*", func(c echo.Context) error {
		r := c.Request()
		if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") &&
			!strings.HasPrefix(r.URL.Path, "/v1/") {
			return serve(c)
		}
		return echo.ErrNotFound
	})
}
