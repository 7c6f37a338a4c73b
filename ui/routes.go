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

	open("GET /static/{name}", u.file)
	open("GET /login", u.loginPage)
	open("POST /login", u.login)
	open("POST /logout", u.logout)

	closed("GET /{$}", outboxPage{u}.outbox)
	closed("GET /log", u.logPage)
	closed("GET /search", u.searchPage)
	closed("GET /cancel", u.confirmCancel)
	closed("POST /cancel", u.cancelAll)
	closed("GET /replay", u.confirmReplay)
	closed("POST /replay", u.replayAll)
	closed("POST /queues/{queue}/pause", outboxPage{u}.pause)
	closed("POST /queues/{queue}/resume", outboxPage{u}.resume)
	closed("GET /messages/{id}", onMessage(u.message))
	closed("GET /messages/{id}/content", onMessage(u.content))
	closed("POST /messages/{id}/cancel", onMessage(u.cancel))
	closed("POST /messages/{id}/retry", onMessage(u.retry))
	closed("POST /messages/{id}/reschedule", onMessage(u.reschedule))
	closed("POST /messages/{id}/replay", onMessage(u.replay))
	closed("GET /webhooks", webhookPages{u}.webhooks)
	closed("GET /webhooks/{id}", onEndpoint(webhookPages{u}.endpoint))
	closed("POST /webhooks/{id}/test", onEndpoint(webhookPages{u}.testEndpoint))
	closed("POST /webhooks/{id}/deliveries/{delivery}/redeliver", onEndpoint(webhookPages{u}.redeliver))
	closed("GET /accounts", u.accounts)
	closed("GET /gateways", u.gateways)
	closed("GET /templates", templatePages{u}.templates)
	closed("GET /templates/{id}", templatePages{u}.template)
	closed("GET /templates/{id}/preview", templatePages{u}.templateFrame)
	closed("POST /templates/{id}/restore", templatePages{u}.restoreTemplate)
	closed("GET /suppressions", suppressionPages{u}.suppressions)
	closed("POST /suppressions/add", suppressionPages{u}.addSuppression)
	closed("POST /suppressions/remove", suppressionPages{u}.removeSuppression)
	closed("POST /suppressions/import", suppressionPages{u}.importSuppressions)
	closed("GET /suppressions/imports/{id}", suppressionPages{u}.suppressionImport)
	closed("GET /rates", u.rates)
	closed("GET /settings", forAdmins(settingsPage{u}.settings))
	closed("POST /settings", forAdmins(settingsPage{u}.changeSettings))
	closed("GET /status", u.status)
	closed(DashboardPath, u.dashboard)
	closed(DashboardPath+"/", u.dashboard)
	closed("/", noPage)
	return mux
}

// mounted are the paths of the table as echo writes them.
var mounted = []string{
	"/", "/static/*", "/login", "/logout", "/log", "/search", "/cancel", "/replay", "/queues/*", "/messages/*",
	"/webhooks", "/webhooks/*", "/accounts", "/gateways", "/templates", "/templates/*", "/suppressions",
	"/suppressions/*", "/rates", "/settings", "/status",
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
