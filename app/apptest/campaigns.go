package apptest

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testsmtp"
)

// Recipients returns the recipients of a campaign by address.
func Recipients(t *testing.T, client *api.Client, id string,
	q api.CampaignRecipientQuery) map[string]api.CampaignRecipient {
	t.Helper()
	q.PageSize = 1000
	page, err := api.ListCampaignRecipients.Do(t.Context(), client, q, id)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]api.CampaignRecipient{}
	for _, r := range page.Recipients {
		all[r.Email] = r
	}
	return all
}

// People subscribes addresses to a list of single opt-in, which is made if it does not exist.
func People(t *testing.T, client *api.Client, list string, addresses ...string) {
	t.Helper()
	if _, err := api.GetList.Do(t.Context(), client, list); err != nil {
		_, err := api.CreateList.Do(t.Context(), client, api.List{ListID: list, Name: list, OptIn: "single"})
		if err != nil {
			t.Fatal(err)
		}
	}
	file := "email,attributes.plan\n"
	for _, one := range addresses {
		file += one + ",pro\n"
	}
	done, err := api.ImportSubscribers.Do(t.Context(), client, strings.NewReader(file),
		api.SubscriberImportOptions{ListID: []string{list}, State: "subscribed", Consent: "test"})
	if err != nil || done.Bad > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
}

// Many returns addresses that the relay accepts.
func Many(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("p%d@example.net", i)
	}
	return list
}

// LetterHTML is the content of campaigns in tests.
const LetterHTML = `<p>Hello {{subscriber.email}}, {{subscriber.attributes.plan}}</p>` +
	`<a href="https://shop.test/sale?who={{subscriber.id}}">Sale</a> <a href="{{rcpt.unsubscribeUrl}}">leave</a>`

// Draft stores a campaign to a list.
func Draft(t *testing.T, client *api.Client, id, list string, change func(*api.Campaign)) {
	t.Helper()
	c := api.Campaign{Campaign: id, Name: "News " + id, Lists: []string{list},
		CampaignContent: api.CampaignContent{Subject: "News", HTML: LetterHTML}}
	if change != nil {
		change(&c)
	}
	if _, err := api.CreateCampaign.Do(t.Context(), client, c); err != nil {
		t.Fatal(err)
	}
}

// SendNow begins a campaign.
func SendNow(t *testing.T, client *api.Client, id string) {
	t.Helper()
	run, err := api.SendCampaign.Do(t.Context(), client, api.CampaignStart{}, id)
	if err != nil || run.State != api.CampaignSending || run.Run != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
}

// Stats returns the numbers of a campaign.
func Stats(t *testing.T, client *api.Client, id string) api.CampaignStats {
	t.Helper()
	st, err := api.GetCampaignStats.Do(t.Context(), client, api.CampaignStatsQuery{}, id)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// Reaches waits for a state of a campaign.
func Reaches(t *testing.T, client *api.Client, id, state string) api.CampaignStats {
	t.Helper()
	var st api.CampaignStats
	Eventually(t, "campaign "+id+" is "+state, func() bool {
		st = Stats(t, client, id)
		return st.State == state
	})
	return st
}

// Copies counts the emails that a relay got for each address.
func Copies(relay *testsmtp.Server) map[string]int {
	got := map[string]int{}
	for _, m := range relay.Messages() {
		for _, to := range m.To {
			got[to]++
		}
	}
	return got
}

var (
	Pixel   = regexp.MustCompile(`https://mail\.example\.com(/o/[\w-]+)`)
	Clicked = regexp.MustCompile(`https://mail\.example\.com(/c/[\w-]+)`)
	Leaving = regexp.MustCompile(`https://mail\.example\.com(/unsubscribe\?t=[\w-]+)`)
)

// Follow asks the Postroom at base for a link of an email, as a browser does.
func Follow(t *testing.T, base, method string, link *regexp.Regexp, m testsmtp.Message, body string) {
	t.Helper()
	text := strings.ReplaceAll(strings.ReplaceAll(string(m.Data), "=\r\n", ""), "=3D", "=")
	text = strings.ReplaceAll(text, "&#x3D;", "=")
	found := link.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no link %s in\n%s", link, text)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer := answered(t, client, method, base+found[1], body,
		"Content-Type", "application/x-www-form-urlencoded",
		"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	if answer.Status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d", method, found[1], answer.Status)
	}
}

// WithVariants makes a draft with the variants a and b, which differ in their subject.
func WithVariants(t *testing.T, client *api.Client, id, list string, trial api.CampaignTrial) {
	t.Helper()
	Draft(t, client, id, list, func(c *api.Campaign) {
		c.Subject = ""
		c.Variants = []api.CampaignVariant{{Variant: "a", Subject: "Subject A"}, {Variant: "b",
			Subject: "Subject B"}}
		c.Test = &trial
	})
}
