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
	t.shared(pattern, t.logged(pattern, kind, h))
}

// growth is sharedChanges that store more than was there: they are refused while Redis has no memory for it.
func (t table) growth(pattern, kind string, h handler) { t.shared(pattern, t.grown(pattern, kind, h)) }

func (t table) grown(pattern, kind string, h handler) handler {
	h = t.logged(pattern, kind, h)
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := t.Outbox.Intake.AdmitsWrite(r.Context(), max(r.ContentLength, 0)); err != nil {
			return err
		}
		return h(w, r)
	}
}

// changes are in the audit log, with the kind of the objects.
func (t table) changes(pattern, kind string, h handler) {
	t.closed(pattern, t.logged(pattern, kind, h))
}

// own pages are about the person who is logged in, whatever the role.
func (t table) own(pattern string, h handler) { t.open(pattern, t.guard(admitsPerson, h)) }

// ownChanges are own pages that the audit log has.
func (t table) ownChanges(pattern, kind string, h handler) {
	t.own(pattern, t.logged(pattern, kind, h))
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
	t.closed("GET /webhooks", t.webhooks)
	t.shared("GET /webhooks/{id}", onEndpoint(t.endpoint))
	t.closed("GET /webhooks/new", t.newEndpoint)
	t.closed("POST /webhooks", t.grown("POST /webhooks", "endpoint", t.createEndpoint))
	t.closed("GET /webhooks/{id}/edit", onEndpoint(t.editEndpoint))
	t.changes("POST /webhooks/{id}", "endpoint", onEndpoint(t.changeEndpoint))
	t.changes("POST /webhooks/{id}/delete", "endpoint", onEndpoint(t.deleteEndpoint))
	t.changes("POST /webhooks/{id}/secret", "endpoint", onEndpoint(t.rotateSecret))
	t.changes("POST /webhooks/{id}/off", "endpoint", onEndpoint(t.switchEndpoint(false)))
	t.sharedChanges("POST /webhooks/{id}/on", "endpoint", onEndpoint(t.switchEndpoint(true)))
	t.sharedChanges("POST /webhooks/{id}/wake", "endpoint", onEndpoint(t.wakeEndpoint))
	t.growth("POST /webhooks/{id}/replay", "endpoint", onEndpoint(t.replayEndpoint))
	t.shared("GET /webhooks/{id}/deliveries/{delivery}", onEndpoint(t.delivery))
	t.sharedChanges("POST /webhooks/{id}/test", "endpoint", onEndpoint(t.testEndpoint))
	t.sharedChanges("POST /webhooks/{id}/deliveries/{delivery}/redeliver", "endpoint",
		onEndpoint(t.redeliver))
}

// mailRoutes are the login, and the pages about mail and the instance.
func (t table) mailRoutes() {
	t.open("GET /static/{name}", t.file)
	t.open("GET /login", t.loginPage)
	t.open("POST /login", t.login)
	t.open("POST /logout", t.logout)
	t.open("POST /theme", t.setTheme)
	t.open("POST /filters", t.setSaved)
	t.open("GET /login/oidc", t.beginSignOn)
	t.open("GET /login/oidc/callback", t.finishSignOn)

	t.shared("GET /{$}", t.overview)
	t.shared("GET /playbooks", t.playbooks)
	t.shared("GET /outbox", t.outbox)
	t.sharedChanges("POST /outbox/ticked", "message", t.changeTicked)
	t.shared("GET /log", t.logPage)
	t.shared("GET /search", t.searchPage)
	t.shared("GET /to/{address}", t.whyPage)
	t.shared("GET /cancel", t.confirmCancel)
	t.sharedChanges("POST /cancel", "message", t.cancelAll)
	t.shared("GET /replay", t.confirmReplay)
	t.sharedChanges("POST /replay", "message", t.replayAll)
	t.closed("GET /queues", t.queues)
	t.changes("POST /queues/{queue}/pause", "queue", t.setPaused(true))
	t.changes("POST /queues/{queue}/resume", "queue", t.setPaused(false))
	t.shared("GET /messages/{id}", onMessage(t.UI, t.message))
	t.shared("GET /messages/{id}/content", onMessage(t.UI, t.content))
	t.shared("GET /messages/{id}/html", onMessage(t.UI, t.mailFrame))
	t.shared("GET /messages/{id}/parts/{part}", onMessage(t.UI, t.part))
	t.sharedChanges("POST /messages/{id}/cancel", "message", onMessage(t.UI, t.cancel))
	t.sharedChanges("POST /messages/{id}/retry", "message", onMessage(t.UI, t.retry))
	t.sharedChanges("POST /messages/{id}/reschedule", "message", onMessage(t.UI, t.reschedule))
	t.sharedChanges("POST /messages/{id}/replay", "message", onMessage(t.UI, t.replay))
	t.shared("GET /templates", t.templates)
	t.shared("GET /templates/new", t.newTemplate)
	t.growth("POST /templates", "template", t.createTemplate)
	t.shared("POST /templates/try", t.tryTemplate)
	t.shared("GET /templates/{id}", t.template)
	t.shared("GET /templates/{id}/edit", t.editTemplate)
	t.shared("GET /templates/{id}/compare", t.compareTemplate)
	t.growth("POST /templates/{id}", "template", t.changeTemplate)
	t.shared("POST /templates/{id}/test", t.testTemplate)
	t.shared("GET /templates/{id}/preview", t.templateFrame)
	t.growth("POST /templates/{id}/restore", "template", t.restoreTemplate)
	t.shared("GET /suppressions", t.suppressions)
	t.sharedChanges("POST /suppressions/add", "suppression", t.addSuppression)
	t.sharedChanges("POST /suppressions/remove", "suppression", t.removeSuppression)
	t.growth("POST /suppressions/import", "suppression", t.importSuppressions)
	t.shared("GET /suppressions/imports/{id}", t.suppressionImport)
	t.shared("GET /rates", t.rates)
	t.closed("GET /status", t.status)
	t.closed(DashboardPath, t.dashboard)
	t.closed(DashboardPath+"/", t.dashboard)
}

func (t table) accountRoutes() {
	t.shared("GET /accounts", t.accounts)
	t.closed("GET /accounts/new", t.newAccount)
	t.changes("POST /accounts", "account", t.createAccount)
	t.shared("GET /accounts/{id}", t.onAccount(t.account))
	t.shared("GET /accounts/{id}/dns", t.onAccount(t.accountDNS))
	t.closed("GET /accounts/{id}/edit", t.onAccount(t.editAccount))
	t.changes("POST /accounts/{id}", "account", t.onAccount(t.changeAccount))
	t.closed("POST /accounts/{id}/verify", t.onAccount(t.verifyAccount))
	t.changes("POST /accounts/{id}/delete", "account", t.deleteAccount)
	t.sharedChanges("POST /accounts/{id}/sender", "account", t.mailSender)
	t.closed("GET /gateways", t.gateways)
	t.closed("GET /gateways/new", t.newGateway)
	t.changes("POST /gateways", "gateway", t.createGateway)
	t.closed("GET /gateways/{id}", t.onGateway(t.gateway))
	t.changes("POST /gateways/{id}", "gateway", t.onGateway(t.changeGateway))
	t.closed("POST /gateways/{id}/verify", t.onGateway(t.verifyGateway))
	t.changes("POST /gateways/{id}/suppressions", "gateway", t.onGateway(t.importProviderList))
	t.changes("POST /gateways/{id}/webhook", "gateway", t.setGatewayHook)
	t.closed("POST /gateways/{id}/domains", t.onGateway(t.gatewayDomains))
	t.changes("POST /gateways/{id}/delete", "gateway", t.deleteGateway)
}

// audienceRoutes are the pages of lists and subscribers.
func (t table) audienceRoutes() {
	t.shared("GET /lists", t.lists)
	t.growth("POST /lists", "list", t.createList)
	t.shared("GET /lists/{id}", t.list)
	t.growth("POST /lists/{id}", "list", t.changeList)
	t.sharedChanges("POST /lists/{id}/delete", "list", t.deleteList)
	t.shared("GET /lists/{id}/form", t.listForm)
	t.shared("GET /lists/{id}/form/preview", t.listFormFrame)
	t.shared("GET /imports", t.imports)
	t.growth("POST /imports", "subscriber", t.importSubscribers)
	t.shared("POST /imports/preview", t.previewImport)
	t.shared("GET /imports/{account}/{id}", t.subscriberImport)
	t.sharedChanges("POST /imports/{account}/{id}/stop", "subscriber", t.stopImport)
	t.shared("GET /segments", t.segments)
	t.growth("POST /segments", "segment", t.createSegment)
	t.shared("POST /segments/new/form", t.reshapeSegment)
	t.shared("POST /segments/new/try", t.trySegment)
	t.shared("GET /segments/{id}", t.segment)
	t.growth("POST /segments/{id}", "segment", t.changeSegment)
	t.shared("POST /segments/{id}/count", t.countSegment)
	t.sharedChanges("POST /segments/{id}/delete", "segment", t.deleteSegment)
	t.shared("GET /audience", t.subscribers)
	t.growth("POST /audience", "subscriber", t.createSubscriber)
	t.shared("GET /audience/{account}/{id}", onSubscriber(t.subscriber))
	t.growth("POST /audience/{account}/{id}", "subscriber", onSubscriber(t.changeSubscriber))
	t.growth("POST /audience/{account}/{id}/subscribe", "subscriber", onSubscriber(t.subscribe))
	t.sharedChanges("POST /audience/{account}/{id}/ask", "subscriber", onSubscriber(t.askSubscriber))
	t.sharedChanges("POST /audience/{account}/{id}/leave", "subscriber", onSubscriber(t.unsubscribe))
	t.sharedChanges("POST /audience/{account}/{id}/delete", "subscriber", onSubscriber(t.deleteSubscriber))
	t.sharedChanges("POST /audience/{account}/{id}/erase", "subscriber", onSubscriber(t.eraseSubscriber))
	t.shared("GET /erasures/{id}", t.erasure)
}

func (t table) campaignRoutes() {
	changes := func(pattern string, h handler) { t.sharedChanges("POST /campaigns"+pattern, "campaign", h) }
	grows := func(pattern string, h handler) { t.growth("POST /campaigns"+pattern, "campaign", h) }
	t.shared("GET /campaigns", t.campaigns)
	t.shared("GET /campaigns/new", t.newCampaign)
	t.shared("POST /campaigns/new/form", t.reshapeCampaign)
	t.shared("POST /campaigns/new/try", t.tryCampaign)
	grows("", t.createCampaign)
	t.shared("GET /campaigns/{id}", t.campaign)
	t.shared("GET /campaigns/{id}/edit", t.editCampaign)
	t.shared("GET /campaigns/{id}/preview", t.campaignPreview)
	t.shared("GET /campaigns/{id}/preview/mail", t.campaignPreviewFrame)
	t.shared("GET /campaigns/{id}/recipients", t.campaignRecipients)
	grows("/{id}", t.changeCampaign)
	changes("/{id}/archive", t.archiveCampaign)
	grows("/{id}/copy", t.copyCampaign)
	changes("/{id}/test", t.testCampaign)
	grows("/{id}/send", t.sendCampaign)
	changes("/{id}/pause", t.simply(t.Campaigns.Pause))
	changes("/{id}/resume", t.simply(t.Campaigns.Resume))
	changes("/{id}/cancel", t.simply(t.Campaigns.Cancel))
	grows("/{id}/resend", t.resendCampaign)
	changes("/{id}/winner", t.decideCampaign)
	changes("/{id}/settle", t.settleCampaign)
	changes("/{id}/recount", t.recountCampaign)
	changes("/{id}/delete", t.deleteCampaign)
}

// digestRoutes are the pages of digests. Package digest answers requests about another account than that of
// the caller with NotFound.
func (t table) digestRoutes() {
	changes := func(pattern, kind string, h handler) { t.sharedChanges("POST /digests"+pattern, kind, h) }
	t.shared("GET /digests", t.digestOverview)
	t.shared("GET /digests/categories", t.kinds)
	t.shared("GET /digests/categories/new", t.newKind)
	t.shared("GET /digests/categories/{account}/{id}", t.kind)
	t.growth("POST /digests/categories", "digestKind", t.createKind)
	t.growth("POST /digests/categories/{account}/{id}", "digestKind", t.changeKind)
	changes("/categories/{account}/{id}/delete", "digestKind", t.deleteKind)
	t.shared("GET /digests/recipients", t.digestRecipients)
	t.shared("GET /digests/recipients/{account}/{id}", t.digestRecipient)
	t.shared("GET /digests/recipients/{account}/{id}/preview", t.digestPreview)
	t.shared("GET /digests/recipients/{account}/{id}/preview/mail", t.digestPreviewFrame)
	changes("/recipients/{account}/{id}", "digestRecipient", t.changeRecipient)
	changes("/recipients/{account}/{id}/send", "digestRecipient", t.sendNow)
	changes("/recipients/{account}/{id}/delete", "digestRecipient", t.deleteRecipient)
	changes("/recipients/{account}/{id}/erase", "digestRecipient", t.eraseRecipient)
	t.shared("GET /digests/runs", t.digestRuns)
	t.shared("GET /digests/runs/{id}", t.digestRun)
	changes("/runs/{id}/retry", "digestRun", t.retryRun)
}

// adminRoutes are the pages for those with the right to change settings.
func (t table) adminRoutes() {
	shows := func(pattern string, h handler) { t.closed(pattern, forAdmins(h)) }
	changes := func(pattern, kind string, h handler) { shows(pattern, t.logged(pattern, kind, h)) }

	shows("GET /settings", t.settings)
	changes("POST /settings", "settings", t.changeSettings)
	shows("GET /tokens", t.tokens)
	changes("POST /tokens", "token", t.createToken)
	changes("POST /tokens/{id}/rotate", "token", t.rotateToken)
	changes("POST /tokens/{id}/delete", "token", t.deleteToken)
	shows("GET /audit", t.auditPage)
	shows("GET /people", t.people)
	shows("GET /people/{id}", t.person)
	changes("POST /people", "person", t.createPerson)
	changes("POST /people/{id}", "person", t.updatePerson)
	changes("POST /people/{id}/link", "person", t.linkPerson)
	changes("POST /people/{id}/totp", "person", t.resetTOTP)
	changes("POST /people/{id}/sessions", "person", t.signOut)
	changes("POST /people/{id}/delete", "person", t.deletePerson)
	shows("GET /sessions", t.sessions)
}

// peopleRoutes are the pages of persons about themselves.
func (t table) peopleRoutes() {
	t.open("GET /link", t.linkPage)
	t.open("POST /link", t.useLink)
	t.open("POST /sessions/{id}/end", t.guard(admitsOwn,
		t.logged("POST /sessions/{id}/end", "session", t.endSession)))
	t.own("GET /me", t.me)
	t.ownChanges("POST /me/account", "person", t.chooseAccount)
	t.ownChanges("POST /me/password", "person", t.changePassword)
	t.ownChanges("POST /me/totp", "person", t.enrolTOTP)
	t.ownChanges("POST /me/totp/confirm", "person", t.confirmTOTP)
	t.ownChanges("POST /me/totp/remove", "person", t.removeTOTP)
}

// mounted are the paths of the table as echo writes them.
var mounted = []string{
	"/", "/playbooks", "/outbox", "/outbox/*", "/static/*", "/login", "/login/*", "/logout", "/theme",
	"/filters", "/log", "/search", "/to/*", "/cancel", "/replay",
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
