package ui

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// handler handles a route. Its error is shown as a page.
type handler func(w http.ResponseWriter, r *http.Request) error

// table is the table of all pages while it is made.
type table struct {
	*UI
	mux *http.ServeMux
}

func (t table) open(pattern string, h handler) {
	if strings.HasPrefix(pattern, "GET ") {
		h = exports(h)
	}
	t.mux.Handle(pattern, t.answer(h))
}

func (t table) closed(pattern string, h handler) { t.open(pattern, t.guard(admits, h)) }

// shared pages show persons with accounts the part of theirs.
func (t table) shared(pattern string, h handler) { t.open(pattern, t.guard(admitsBound, h)) }

// sharedChanges are shared pages that the audit log has.
func (t table) sharedChanges(pattern, kind string, h handler) {
	t.shared(pattern, audits{t.UI}.logged(pattern, kind, h))
}

// growth is sharedChanges that store more than was there: they are refused while Redis has no memory for it.
func (t table) growth(pattern, kind string, h handler) { t.shared(pattern, t.grown(pattern, kind, h)) }

func (t table) grown(pattern, kind string, h handler) handler {
	h = audits{t.UI}.logged(pattern, kind, h)
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := t.Outbox.AdmitsWrite(r.Context(), max(r.ContentLength, 0)); err != nil {
			return err
		}
		return h(w, r)
	}
}

// changes are in the audit log, with the kind of the objects.
func (t table) changes(pattern, kind string, h handler) {
	t.closed(pattern, audits{t.UI}.logged(pattern, kind, h))
}

// own pages are about the person who is logged in, whatever the role.
func (t table) own(pattern string, h handler) { t.open(pattern, t.guard(admitsPerson, h)) }

// ownChanges are own pages that the audit log has.
func (t table) ownChanges(pattern, kind string, h handler) {
	t.own(pattern, audits{t.UI}.logged(pattern, kind, h))
}

// routes returns the table of all pages.
func (u *UI) routes() *http.ServeMux {
	t := table{u, http.NewServeMux()}
	t.mailRoutes()
	t.accountRoutes()
	t.webhookRoutes()
	t.audienceRoutes()
	t.campaignRoutes()
	t.digestRoutes()
	t.adminRoutes()
	t.peopleRoutes()
	t.demoRoutes()
	t.docsRoutes()
	t.closed("/", noPage)
	return t.mux
}

// docsRoutes are the documentation, for everybody.
func (t table) docsRoutes() {
	reference := newReferencePages(t.UI)
	t.open("GET /docs", t.known(reference.list))
	t.open("GET /docs/api/{operation}", t.known(reference.operation))
	t.open("GET "+guidePath, t.known(reference.guide))
	t.open("GET "+guidePath+"/{page...}", t.known(reference.guide))
}

// webhookRoutes are the pages about webhook endpoints.
func (t table) webhookRoutes() {
	hooks := webhookPages{t.UI}
	t.closed("GET /webhooks", hooks.webhooks)
	t.shared("GET /webhooks/{id}", onEndpoint(hooks.endpoint))
	t.closed("GET /webhooks/new", hooks.newEndpoint)
	t.closed("POST /webhooks", t.grown("POST /webhooks", "endpoint", hooks.createEndpoint))
	t.closed("GET /webhooks/{id}/edit", onEndpoint(hooks.editEndpoint))
	t.changes("POST /webhooks/{id}", "endpoint", onEndpoint(hooks.changeEndpoint))
	t.changes("POST /webhooks/{id}/delete", "endpoint", onEndpoint(hooks.deleteEndpoint))
	t.changes("POST /webhooks/{id}/secret", "endpoint", onEndpoint(hooks.rotateSecret))
	t.changes("POST /webhooks/{id}/off", "endpoint", onEndpoint(hooks.switchEndpoint(false)))
	t.sharedChanges("POST /webhooks/{id}/on", "endpoint", onEndpoint(hooks.switchEndpoint(true)))
	t.sharedChanges("POST /webhooks/{id}/wake", "endpoint", onEndpoint(hooks.wakeEndpoint))
	t.growth("POST /webhooks/{id}/replay", "endpoint", onEndpoint(hooks.replayEndpoint))
	t.shared("GET /webhooks/{id}/deliveries/{delivery}", onEndpoint(hooks.delivery))
	t.sharedChanges("POST /webhooks/{id}/test", "endpoint", onEndpoint(hooks.testEndpoint))
	t.sharedChanges("POST /webhooks/{id}/deliveries/{delivery}/redeliver", "endpoint",
		onEndpoint(hooks.redeliver))
}

// mailRoutes are the login, and the pages about mail and the instance.
func (t table) mailRoutes() {
	u := t.UI
	t.open("GET /static/{name}", u.file)
	t.open("GET /login", loginPages{u}.loginPage)
	t.open("POST /login", loginPages{u}.login)
	t.open("POST /logout", u.logout)
	t.open("POST /theme", loginPages{u}.setTheme)
	t.open("POST /filters", loginPages{u}.setSaved)
	t.open("GET /login/oidc", loginPages{u}.beginSignOn)
	t.open("GET /login/oidc/callback", loginPages{u}.finishSignOn)

	t.shared("GET /{$}", overviewPages{u}.overview)
	t.shared("GET /playbooks", overviewPages{u}.playbooks)
	t.shared("GET /outbox", outboxPage{u}.outbox)
	t.shared("GET /log", u.logPage)
	t.shared("GET /search", u.searchPage)
	t.shared("GET /to/{address}", u.whyPage)
	t.shared("GET /cancel", u.confirmCancel)
	t.sharedChanges("POST /cancel", "message", u.cancelAll)
	t.shared("GET /replay", u.confirmReplay)
	t.sharedChanges("POST /replay", "message", u.replayAll)
	t.closed("GET /queues", queuePages{u}.queues)
	t.changes("POST /queues/{queue}/pause", "queue", outboxPage{u}.pause)
	t.changes("POST /queues/{queue}/resume", "queue", outboxPage{u}.resume)
	t.shared("GET /messages/{id}", onMessage(u, u.message))
	content := contentPages{u}
	t.shared("GET /messages/{id}/content", onMessage(u, content.content))
	t.shared("GET /messages/{id}/html", onMessage(u, content.mailFrame))
	t.shared("GET /messages/{id}/parts/{part}", onMessage(u, content.part))
	t.sharedChanges("POST /messages/{id}/cancel", "message", onMessage(u, u.cancel))
	t.sharedChanges("POST /messages/{id}/retry", "message", onMessage(u, u.retry))
	t.sharedChanges("POST /messages/{id}/reschedule", "message", onMessage(u, u.reschedule))
	t.sharedChanges("POST /messages/{id}/replay", "message", onMessage(u, u.replay))
	t.shared("GET /templates", templatePages{u}.templates)
	t.shared("GET /templates/new", templatePages{u}.newTemplate)
	t.growth("POST /templates", "template", templatePages{u}.createTemplate)
	t.shared("POST /templates/try", templatePages{u}.tryTemplate)
	t.shared("GET /templates/{id}", templatePages{u}.template)
	t.shared("GET /templates/{id}/edit", templatePages{u}.editTemplate)
	t.shared("GET /templates/{id}/compare", templatePages{u}.compareTemplate)
	t.growth("POST /templates/{id}", "template", templatePages{u}.changeTemplate)
	t.shared("POST /templates/{id}/test", templatePages{u}.testTemplate)
	t.shared("GET /templates/{id}/preview", templatePages{u}.templateFrame)
	t.growth("POST /templates/{id}/restore", "template", templatePages{u}.restoreTemplate)
	t.shared("GET /suppressions", suppressionPages{u}.suppressions)
	t.sharedChanges("POST /suppressions/add", "suppression", suppressionPages{u}.addSuppression)
	t.sharedChanges("POST /suppressions/remove", "suppression", suppressionPages{u}.removeSuppression)
	t.growth("POST /suppressions/import", "suppression", suppressionPages{u}.importSuppressions)
	t.shared("GET /suppressions/imports/{id}", suppressionPages{u}.suppressionImport)
	t.shared("GET /rates", u.rates)
	t.closed("GET /status", u.status)
	t.closed(DashboardPath, u.dashboard)
	t.closed(DashboardPath+"/", u.dashboard)
}

// accountRoutes are the pages of accounts and gateways.
func (t table) accountRoutes() {
	a, p := accountPages{t.UI}, gatewayPages{t.UI}
	t.shared("GET /accounts", a.accounts)
	t.closed("GET /accounts/new", a.newAccount)
	t.changes("POST /accounts", "account", a.createAccount)
	t.shared("GET /accounts/{id}", a.onAccount(a.account))
	t.shared("GET /accounts/{id}/dns", a.onAccount(a.accountDNS))
	t.closed("GET /accounts/{id}/edit", a.onAccount(a.editAccount))
	t.changes("POST /accounts/{id}", "account", a.onAccount(a.changeAccount))
	t.closed("POST /accounts/{id}/verify", a.onAccount(a.verifyAccount))
	t.changes("POST /accounts/{id}/delete", "account", a.deleteAccount)
	t.sharedChanges("POST /accounts/{id}/sender", "account", a.mailSender)
	t.closed("GET /gateways", p.gateways)
	t.closed("GET /gateways/new", p.newGateway)
	t.changes("POST /gateways", "gateway", p.createGateway)
	t.closed("GET /gateways/{id}", p.onGateway(p.gateway))
	t.changes("POST /gateways/{id}", "gateway", p.onGateway(p.changeGateway))
	t.closed("POST /gateways/{id}/verify", p.onGateway(p.verifyGateway))
	t.changes("POST /gateways/{id}/delete", "gateway", p.deleteGateway)
}

// audienceRoutes are the pages of lists and subscribers.
func (t table) audienceRoutes() {
	p := audiencePages{t.UI}
	t.shared("GET /lists", p.lists)
	t.growth("POST /lists", "list", p.createList)
	t.shared("GET /lists/{id}", p.list)
	t.growth("POST /lists/{id}", "list", p.changeList)
	t.sharedChanges("POST /lists/{id}/delete", "list", p.deleteList)
	t.shared("GET /lists/{id}/form", p.listForm)
	t.shared("GET /lists/{id}/form/preview", p.listFormFrame)
	t.shared("GET /imports", p.imports)
	t.growth("POST /imports", "subscriber", p.importSubscribers)
	t.shared("GET /imports/{account}/{id}", p.subscriberImport)
	t.sharedChanges("POST /imports/{account}/{id}/stop", "subscriber", p.stopImport)
	t.shared("GET /segments", p.segments)
	t.growth("POST /segments", "segment", p.createSegment)
	t.shared("GET /segments/{id}", p.segment)
	t.growth("POST /segments/{id}", "segment", p.changeSegment)
	t.shared("POST /segments/{id}/count", p.countSegment)
	t.sharedChanges("POST /segments/{id}/delete", "segment", p.deleteSegment)
	t.shared("GET /audience", p.subscribers)
	t.growth("POST /audience", "subscriber", p.createSubscriber)
	t.shared("GET /audience/{account}/{id}", p.subscriber)
	t.growth("POST /audience/{account}/{id}", "subscriber", p.changeSubscriber)
	t.growth("POST /audience/{account}/{id}/subscribe", "subscriber", p.subscribe)
	t.sharedChanges("POST /audience/{account}/{id}/ask", "subscriber", p.ask)
	t.sharedChanges("POST /audience/{account}/{id}/leave", "subscriber", p.leave)
	t.sharedChanges("POST /audience/{account}/{id}/delete", "subscriber", p.deleteSubscriber)
	t.sharedChanges("POST /audience/{account}/{id}/erase", "subscriber", p.erase)
	t.shared("GET /erasures/{id}", p.erasure)
}

// campaignRoutes are the pages of campaigns.
func (t table) campaignRoutes() {
	p := campaignPages{t.UI}
	changes := func(pattern string, h handler) { t.sharedChanges("POST /campaigns"+pattern, "campaign", h) }
	grows := func(pattern string, h handler) { t.growth("POST /campaigns"+pattern, "campaign", h) }
	t.shared("GET /campaigns", p.campaigns)
	t.shared("GET /campaigns/new", p.newCampaign)
	grows("", p.createCampaign)
	t.shared("GET /campaigns/{id}", p.campaign)
	t.shared("GET /campaigns/{id}/edit", p.editCampaign)
	t.shared("GET /campaigns/{id}/preview", p.preview)
	t.shared("GET /campaigns/{id}/preview/mail", p.previewFrame)
	t.shared("GET /campaigns/{id}/recipients", p.recipients)
	grows("/{id}", p.changeCampaign)
	changes("/{id}/archive", p.archiveCampaign)
	grows("/{id}/copy", p.copyCampaign)
	changes("/{id}/test", p.testCampaign)
	grows("/{id}/send", p.sendCampaign)
	changes("/{id}/pause", p.simply(p.Campaigns.Pause))
	changes("/{id}/resume", p.simply(p.Campaigns.Resume))
	changes("/{id}/cancel", p.simply(p.Campaigns.Cancel))
	grows("/{id}/resend", p.resendCampaign)
	changes("/{id}/winner", p.decideCampaign)
	changes("/{id}/settle", p.settleCampaign)
	changes("/{id}/recount", p.recountCampaign)
	changes("/{id}/delete", p.deleteCampaign)
}

// digestRoutes are the pages of digests.
func (t table) digestRoutes() {
	p := digestPages{t.UI}
	changes := func(pattern, kind string, h handler) { t.sharedChanges("POST /digests"+pattern, kind, h) }
	t.shared("GET /digests", p.overview)
	t.shared("GET /digests/kinds", p.kinds)
	t.shared("GET /digests/kinds/new", p.newKind)
	t.shared("GET /digests/kinds/{account}/{id}", p.kind)
	t.growth("POST /digests/kinds", "digestKind", p.createKind)
	t.growth("POST /digests/kinds/{account}/{id}", "digestKind", p.changeKind)
	changes("/kinds/{account}/{id}/delete", "digestKind", p.deleteKind)
	t.shared("GET /digests/recipients", p.recipients)
	t.shared("GET /digests/recipients/{account}/{id}", p.recipient)
	t.shared("GET /digests/recipients/{account}/{id}/preview", p.preview)
	t.shared("GET /digests/recipients/{account}/{id}/preview/mail", p.previewFrame)
	changes("/recipients/{account}/{id}", "digestRecipient", p.changeRecipient)
	changes("/recipients/{account}/{id}/send", "digestRecipient", p.sendNow)
	changes("/recipients/{account}/{id}/delete", "digestRecipient", p.deleteRecipient)
	changes("/recipients/{account}/{id}/erase", "digestRecipient", p.eraseRecipient)
	t.shared("GET /digests/runs", p.runs)
	t.shared("GET /digests/runs/{id}", p.run)
	changes("/runs/{id}/retry", "digestRun", p.retryRun)
}

// adminRoutes are the pages for those with the right to change settings.
func (t table) adminRoutes() {
	u := t.UI
	shows := func(pattern string, h handler) { t.closed(pattern, forAdmins(h)) }
	changes := func(pattern, kind string, h handler) { shows(pattern, audits{u}.logged(pattern, kind, h)) }

	shows("GET /settings", settingsPage{u}.settings)
	changes("POST /settings", "settings", settingsPage{u}.changeSettings)
	shows("GET /tokens", tokenPages{u}.tokens)
	changes("POST /tokens", "token", tokenPages{u}.createToken)
	changes("POST /tokens/{id}/rotate", "token", tokenPages{u}.rotateToken)
	changes("POST /tokens/{id}/delete", "token", tokenPages{u}.deleteToken)
	shows("GET /audit", audits{u}.page)
	shows("GET /people", peoplePages{u}.people)
	shows("GET /people/{id}", peoplePages{u}.person)
	changes("POST /people", "person", peoplePages{u}.create)
	changes("POST /people/{id}", "person", peoplePages{u}.update)
	changes("POST /people/{id}/link", "person", peoplePages{u}.link)
	changes("POST /people/{id}/totp", "person", peoplePages{u}.resetTOTP)
	changes("POST /people/{id}/sessions", "person", peoplePages{u}.signOut)
	changes("POST /people/{id}/delete", "person", peoplePages{u}.remove)
	shows("GET /sessions", peoplePages{u}.sessions)
}

// peopleRoutes are the pages of persons about themselves.
func (t table) peopleRoutes() {
	u := t.UI
	t.open("GET /link", peoplePages{u}.linkPage)
	t.open("POST /link", peoplePages{u}.useLink)
	t.open("POST /sessions/{id}/end", u.guard(admitsOwn,
		audits{u}.logged("POST /sessions/{id}/end", "session", peoplePages{u}.endSession)))
	t.own("GET /me", peoplePages{u}.me)
	t.ownChanges("POST /me/account", "person", peoplePages{u}.chooseAccount)
	t.ownChanges("POST /me/password", "person", peoplePages{u}.changePassword)
	t.ownChanges("POST /me/totp", "person", peoplePages{u}.enrol)
	t.ownChanges("POST /me/totp/confirm", "person", peoplePages{u}.confirm)
	t.ownChanges("POST /me/totp/remove", "person", peoplePages{u}.removeTOTP)
}

// mounted are the paths of the table as echo writes them.
var mounted = []string{
	"/", "/playbooks", "/outbox", "/static/*", "/login", "/login/*", "/logout", "/theme", "/filters",
	"/log", "/search", "/to/*", "/cancel", "/replay",
	"/queues", "/queues/*",
	"/messages/*",
	"/webhooks", "/webhooks/*", "/accounts", "/accounts/*", "/gateways", "/gateways/*",
	"/templates", "/templates/*",
	"/suppressions", "/suppressions/*", "/lists", "/lists/*", "/segments", "/segments/*",
	"/campaigns", "/campaigns/*", "/digests", "/digests/*", "/audience", "/audience/*", "/imports", "/imports/*",
	"/erasures/*", "/rates", "/settings",
	"/tokens", "/tokens/*", "/audit", "/status", "/link", "/people", "/people/*", "/sessions",
	"/sessions/*", "/me", "/me/*", "/docs", "/docs/*",
	DashboardPath, DashboardPath + "/*",
}

// Mount adds the pages to the routes of an echo. Browsers get a page for unknown paths; programs get echo's
// own answer.
func (u *UI) Mount(e *echo.Echo) {
	serve := echo.WrapHandler(u)
	for _, path := range mounted {
		e.Any(path, serve)
	}
	if u.opts.Demo != nil {
		for _, path := range mountedInDemo {
			e.Any(path, serve)
		}
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
