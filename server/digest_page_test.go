package server

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/outbox/suppression"
)

// setupDigests is setupRecipients with a digest reader in account shop, and two kinds. One of them is
// required.
func setupDigests(t *testing.T) *recipients {
	t.Helper()
	r := setupRecipients(t)
	r.parts.account(t, "shop")
	for _, k := range []api.DigestKind{
		{Category: "comment", Title: map[string]string{"en": "Comments", "de": "Kommentare"}},
		{Category: "security", Title: map[string]string{"en": "Security"}, Required: true}} {
		k.Account = "shop"
		if _, err := r.parts.Digests.Kinds.Create(t.Context(), "", k); err != nil {
			t.Fatal(err)
		}
	}
	r.reader("ann", nil)
	return r
}

// reader stores a reader with the address ann@example.net.
func (r *recipients) reader(id string, preferences map[string]*api.DigestPreference) {
	r.t.Helper()
	email := "ann@example.net"
	if _, _, err := r.parts.Digests.Put(r.t.Context(), "", id, api.DigestRecipientRequest{Account: "shop",
		Email: &email, Preferences: preferences}); err != nil {
		r.t.Fatal(err)
	}
}

// shown returns a reader as the API shows it.
func (r *recipients) shown(id string) api.DigestRecipient {
	r.t.Helper()
	one, err := r.parts.Digests.Recipients.Get(r.t.Context(), "", api.DigestAccount{Account: "shop"}, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return one
}

// chooses sends fields of the form of digests, as pairs of name and value.
func (r *recipients) chooses(pairs ...string) seen {
	r.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return r.post("/preferences?t="+r.token("digest.shop", "ann@example.net"), form)
}

func number(n int) *int { return &n }

func TestReadersChooseTheirDigests(t *testing.T) {
	t.Parallel()
	r := setupDigests(t)
	page := r.get("/preferences?t=" + r.token("digest.shop", "ann@example.net"))
	for _, want := range []string{"<legend>Comments</legend>", "<legend>Security</legend>", "Everything else",
		`<option value="daily" selected>Every day`, `value="UTC" list="r0-tz-list"`, "Next time:", "08:00 (UTC)",
		"You can&#39;t turn this off.", "<h2>Digests</h2>"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %q:\n%s", want, page.body)
		}
	}
	if page.status != 200 || strings.Contains(page.body, "<script") || strings.Contains(page.body, "ann@") ||
		strings.Contains(page.body, "digest.shop") || strings.Count(page.body, `<option value="off"`) != 2 {
		t.Errorf("%d, a script, the address, the id of the list, or off for what is required:\n%s", page.status,
			page.body)
	}
	saved := r.chooses("mode.comment", "weekly", "weekday.comment", "mon", "weekday.comment", "thu",
		"hour.comment", "17", "minute.comment", "30", "tz", "Europe/Zurich")
	if saved.status != 200 || !strings.Contains(saved.body, `role="status"`) ||
		!strings.Contains(saved.body, "17:30 (Europe/Zurich)") {
		t.Errorf("saved: %d\n%s", saved.status, saved.body)
	}
	first := r.shown("ann")
	want := api.DigestPreferences{"comment": {Mode: "weekly", Weekdays: []string{"mon", "thu"}, Hour: number(17),
		Minute: number(30)}}
	if diff := cmp.Diff(want, first.Preferences); diff != "" || first.TZ != "Europe/Zurich" {
		t.Errorf("zone %s, preferences (-want +got):\n%s", first.TZ, diff)
	}
	r.chooses("hour.comment", "9")
	want["comment"] = api.DigestPreference{Mode: "weekly", Weekdays: []string{"mon", "thu"}, Hour: number(9),
		Minute: number(30)}
	second := r.shown("ann")
	if diff := cmp.Diff(want, second.Preferences); diff != "" || second.TZ != "Europe/Zurich" {
		t.Errorf("only the hour, zone %s (-want +got):\n%s", second.TZ, diff)
	}
	r.chooses("hour.comment", "9", "mode.security", "daily")
	if again := r.shown("ann"); again.Version != second.Version {
		t.Errorf("the same again made version %d of %d", again.Version, second.Version)
	}
	r.chooses("mode.*", "off", "hour.security", "8")
	want["*"] = api.DigestPreference{Mode: "off"}
	want["security"] = api.DigestPreference{Mode: "daily", Hour: number(8), Minute: number(0)}
	if diff := cmp.Diff(want, r.shown("ann").Preferences); diff != "" {
		t.Errorf("what was sent beside everything else follows it (-want +got):\n%s", diff)
	}
	if page := r.chooses("mode.comment", "off"); strings.Count(page.body, "You get no mail about this.") != 3 ||
		strings.Count(page.body, "<button") != 2 {
		t.Errorf("all off:\n%s", page.body)
	}
	r.chooses("mode.comment", "weekly", "weekday.comment", "thu")
	german := r.get("/preferences?t="+r.token("digest.shop", "ann@example.net"), "Accept-Language", "de")
	if !strings.Contains(german.body, "Kommentare") || !strings.Contains(german.body, "Jede Woche") ||
		!strings.Contains(german.body, "Donnerstag") {
		t.Errorf("in German:\n%s", german.body)
	}
}

func TestWrongChoicesAreNamedAndChangeNothing(t *testing.T) {
	t.Parallel()
	r := setupDigests(t)
	for name, c := range map[string]struct {
		field, value, id, says string
	}{
		"mode":     {"mode.comment", "yearly", "r0-0-mode", "Comments, How often</a>: Choose one"},
		"custom":   {"mode.comment", "custom", "r0-0-mode", "Comments, How often"},
		"required": {"mode.security", "off", "r0-1-mode", "Security, How often</a>: This can&#39;t be turned off."},
		"hour":     {"hour.*", "24", "r0-2-hour", "Everything else, Hour</a>: Choose a whole number from 0 to 23."},
		"minute":   {"minute.comment", "", "r0-0-minute", "Comments, Minute"},
		"weekday":  {"weekday.comment", "mon,someday", "r0-0-weekday", "Comments, Days of the week"},
		"day":      {"day.comment", "0", "r0-0-day", "Comments, Day of the month"},
		"zone":     {"tz", "Europe/Nowhere", "r0-tz", "Time zone</a>: Write a time zone"},
		"new":      {"hour.mention", "x", "r0-2-hour", "Mention, Hour"},
		"category": {"mode." + strings.Repeat("x", 65), "off", "", "must be a category of 1 to 64 characters"},
	} {
		got := r.chooses(c.field, c.value, "mode.*", "off")
		if got.status != 400 || !strings.Contains(got.body, `role="alert"`) ||
			!strings.Contains(got.body, c.says) || strings.Contains(got.body, `role="status"`) {
			t.Errorf("%s: %d\n%s", name, got.status, got.body)
		}
		if c.id != "" && (!strings.Contains(got.body, `href="#`+c.id+`"`) || !strings.Contains(got.body,
			`id="`+c.id+`"`) || !strings.Contains(got.body, `id="wrong-`+c.id+`"`)) {
			t.Errorf("%s: nothing leads to %s:\n%s", name, c.id, got.body)
		}
		if one := r.shown("ann"); one.Version != 1 {
			t.Errorf("%s: changed: %+v", name, one)
		}
	}
}

// TestAWeeklyDigestNeedsADay: unticking all days shows an error at the field, and changes nothing. Browsers
// send nothing for a box that is not ticked, but the form also has an empty field.
func TestAWeeklyDigestNeedsADay(t *testing.T) {
	t.Parallel()
	r := setupDigests(t)
	page := r.get("/preferences?t=" + r.token("digest.shop", "ann@example.net"))
	if !strings.Contains(page.body, `<input type="hidden" name="weekday.comment" value="">`) {
		t.Errorf("a form without days does not tell it:\n%s", page.body)
	}
	r.chooses("mode.comment", "weekly", "weekday.comment", "", "weekday.comment", "thu")
	before := r.shown("ann")
	if days := before.Preferences["comment"].Weekdays; len(days) != 1 || days[0] != "thu" {
		t.Errorf("days %v, want thu", days)
	}
	got := r.chooses("mode.comment", "weekly", "weekday.comment", "")
	if got.status != 400 || !strings.Contains(got.body, "Comments, Days of the week</a>: Choose at least one day.") ||
		strings.Contains(got.body, `role="status"`) {
		t.Errorf("no days: %d\n%s", got.status, got.body)
	}
	if after := r.shown("ann"); after.Version != before.Version {
		t.Errorf("changed: %+v", after)
	}
	if got := r.chooses("mode.comment", "daily", "weekday.comment", ""); got.status != 200 {
		t.Errorf("a daily digest needs days: %d\n%s", got.status, got.body)
	}
}

// TestTurningOnTakesBackLeaving: who left by the button, and chooses a cadence, is mailed again.
func TestTurningOnTakesBackLeaving(t *testing.T) {
	t.Parallel()
	r := setupDigests(t)
	r.reader("ann", map[string]*api.DigestPreference{"security": {Mode: "weekly"}, "comment": {Mode: "hourly"}})
	leave := func() seen {
		return r.press(r.get("/unsubscribe?t="+r.token("digest.shop", "ann@example.net")), actionUnsubscribe)
	}
	ask := r.get("/unsubscribe?t=" + r.token("digest.shop", "ann@example.net"))
	if !strings.Contains(ask.body, "Turn off digests?") || !strings.Contains(ask.body, `href="preferences?t=`) ||
		strings.Contains(ask.body, "digest.shop") {
		t.Errorf("the page:\n%s", ask.body)
	}
	left := leave()
	off := api.DigestPreferences{"*": {Mode: "off"}, "security": {Mode: "weekly"}}
	if diff := cmp.Diff(off, r.shown("ann").Preferences); diff != "" || left.status != 200 ||
		!r.stopped("digest.shop", "ann@example.net") {
		t.Errorf("left: %d (-want +got):\n%s", left.status, diff)
	}
	r.chooses("mode.security", "hourly", "tz", "Asia/Tokyo")
	if !r.stopped("digest.shop", "ann@example.net") {
		t.Error("a required category took the leaving back")
	}
	if page := r.chooses("mode.comment", "daily"); r.stopped("digest.shop", "ann@example.net") ||
		!strings.Contains(page.body, "(Asia/Tokyo)") {
		t.Errorf("turned on:\n%s", page.body)
	}
	back := r.press(leave(), actionResubscribe)
	want := api.DigestPreferences{"security": {Mode: "hourly", Minute: number(0)}}
	if diff := cmp.Diff(want, r.shown("ann").Preferences); diff != "" || r.stopped("digest.shop",
		"ann@example.net") || !strings.Contains(back.body, "as often as the sender suggests") {
		t.Errorf("back: %s (-want +got):\n%s", back.body, diff)
	}
}

func TestMailOfOtherListsShowsDigestsToo(t *testing.T) {
	t.Parallel()
	r := setupDigests(t)
	r.reader("ann-2", nil)
	page := r.get("/preferences?t=" + r.token("news", "ann@example.net"))
	if strings.Count(page.body, `class="digests"`) != 2 || !strings.Contains(page.body, "Mail of the list") ||
		!strings.Contains(page.body, `name="recipient" value="ann-2"`) {
		t.Errorf("two readers:\n%s", page.body)
	}
	if r.chooses("recipient", "ann-2", "mode.comment", "off"); len(r.shown("ann").Preferences) != 0 ||
		r.shown("ann-2").Preferences["comment"].Mode != "off" {
		t.Error("the form of one changed the other, or nothing")
	}
	if got := r.chooses("recipient", "bob", "mode.comment", "off"); got.status != 404 {
		t.Errorf("somebody else: %d", got.status)
	}
	if page := r.get("/preferences?t=" + r.token("news", "eve@example.net")); strings.Contains(page.body,
		"How often") {
		t.Errorf("somebody without digests:\n%s", page.body)
	}
	if got := r.post("/preferences", url.Values{"t": {"forged"}, "mode.comment": {"off"}}); got.status != 404 {
		t.Errorf("a forged link: %d", got.status)
	}
	all := suppression.Entry{Address: "ann@example.net", Reason: suppression.Unsubscribe, Account: "shop"}
	if _, err := r.store.Add(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if page = r.get("/preferences?t=" + r.token("news", "ann@example.net")); strings.Count(page.body,
		"Next time:") != 2 {
		t.Errorf("only what is required comes:\n%s", page.body)
	}
}

// TestDigestFormsAreLabelled: each field has a label, and no id comes twice.
func TestDigestFormsAreLabelled(t *testing.T) {
	t.Parallel()
	r := setupDigests(t)
	const evil = `"><script>alert(1)</script>`
	r.reader(evil, map[string]*api.DigestPreference{evil: {Mode: "custom", Times: []api.DigestWeekTime{
		{Weekday: "mon", At: "08:30"}, {Weekday: "fri", At: "17:00"}}}})
	page := r.get("/preferences?t=" + r.token(digest.ListID("shop"), "ann@example.net"))
	ids := map[string]int{}
	for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
		ids[id[1]]++
	}
	for _, field := range regexp.MustCompile(`<(?:select|input type="text") id="([^"]*)"`).FindAllStringSubmatch(
		page.body, -1) {
		if ids[field[1]] != 1 || strings.Count(page.body, `<label for="`+field[1]+`">`) != 1 {
			t.Errorf("%s comes %d times, or has no label", field[1], ids[field[1]])
		}
	}
	if len(ids) < 20 || strings.Contains(page.body, "<script") ||
		!strings.Contains(page.body, "As set up: Monday 08:30, Friday 17:00") {
		t.Errorf("%d ids:\n%s", len(ids), page.body)
	}
}
