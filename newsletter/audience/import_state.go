package audience

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/message"
)

// The targets of columns that say whether somebody gets mail.
const (
	saysState        = "state"        // a word such as active or unsubscribed
	saysSubscribed   = "subscribed"   // yes, or when
	saysUnsubscribed = "unsubscribed" // yes, or when
	saysConfirmed    = "confirmed"    // yes, or when; otherwise pending
	saysWhyLeft      = "why"          // any text: why or when somebody left
)

var stateTargets = []string{saysState, saysSubscribed, saysUnsubscribed, saysConfirmed, saysWhyLeft}

// stateHeadings are the bare headings of such columns in exports of ActiveCampaign, AWeber, beehiiv, Brevo,
// Buttondown, Campaign Monitor, CleverReach, Constant Contact, Ghost, HubSpot, Keila, Kit, Klaviyo, listmonk,
// Mailchimp, MailerLite, MailPoet, Mautic, phpList, Salesforce, Sendy, Shopify and Substack.
var stateHeadings = headingsOf(map[string]string{
	saysState: "status state subscriptionstatus subscriptionstate subscriberstatus emailstatus contactstatus " +
		"memberstatus globalstatus liststatus mailingstatus newsletterstatus optinstatus subscribertype " +
		"emailpermissionstatus permissionstatus emailsubscriptionstatus emailconsentstatus emailmarketingstatus " +
		"unsubscribestatus stopstatus abostatus statut",
	saysSubscribed: "subscribed issubscribed subscribe subscribedtoemails subscribedtoemail " +
		"subscribedtonewsletter newsletter newslettersubscribed active isactive activated enabled emailenabled " +
		"optin isoptin optedin emailoptin newsletteroptin marketingoptin acceptsmarketing acceptsemailmarketing " +
		"acceptmarketing emailmarketing emailmarketingconsent marketingconsent angemeldet abonniert aktiv abonne " +
		"inscrit actif",
	saysUnsubscribed: "unsubscribed isunsubscribed unsubscribe unsubscribedfromallemail unsubscribedfromall " +
		"unsub optout isoptout optedout isoptedout emailoptout emailoptedout hasoptedoutofemail " +
		"optedoutofemail blacklisted isblacklisted emailblacklisted emailblacklist blacklist blocklisted " +
		"isblocklisted emailblocklisted emailblocklist blocklist isthisuserblacklisted suppressed issuppressed " +
		"emailsuppressed bounced isbounced hardbounced hardbounce complained complaint spam spamcomplaint " +
		"markedasspam disabled emaildisabled deactivated inactive deleted removed cleaned clean blocked left " +
		"donotemail donotmail donotcontact donotsend dnc abgemeldet ausgetragen gesperrt widerrufen desabonne " +
		"desinscrit bloque",
	saysConfirmed: "confirmed isconfirmed confirm verified isverified emailverified emailconfirmed " +
		"istheemailofthisuserconfirmed bestatigt confirme",
})

// headingsOf returns the target of each heading.
func headingsOf(lists map[string]string) map[string]string {
	all := map[string]string{}
	for target, list := range lists {
		for heading := range strings.FieldsSeq(list) {
			all[heading] = target
		}
	}
	return all
}

// Parts of headings that may say who gets mail, and of headings that say why or when somebody left.
var (
	stateParts = strings.Fields("subscri optin optedin status statut consent permission doubleopt angemeldet anmeld " +
		"abonn inscri einwillig")
	leftParts = strings.Fields("unsub optout optedout blacklist blocklist suppress bounce complain undeliver donot " +
		"abgemeldet abmeld ausgetragen desabonn desinscri widerruf gesperrt")
	dateParts = strings.Fields("date datetime timestamp time reason reasonother source campaigntitle datum at on")
)

// stateColumn returns the target of a heading that says who gets mail, or "". asks means that it may.
func stateColumn(heading string) (target string, asks bool) {
	name := bare(heading)
	if target, ok := stateHeadings[name]; ok {
		return target, false
	}
	if strings.HasPrefix(name, "optedoutof") || strings.HasPrefix(name, "unsubscribedfrom") {
		return saysUnsubscribed, false
	}
	for _, end := range [...]string{"id", "uuid", "key", "ip", "url", "link"} {
		if strings.HasSuffix(name, end) {
			return "", false
		}
	}
	has := func(part string) bool { return strings.Contains(name, part) }
	left, dated := slices.ContainsFunc(leftParts, has), strings.HasPrefix(name, "date")
	for _, part := range dateParts {
		base, ok := strings.CutSuffix(name, part)
		if ok && (len(part) > 2 || strings.HasSuffix(base, "ed") || strings.HasSuffix(base, "in")) {
			dated, left = true, left || stateHeadings[base] == saysUnsubscribed
			if stateHeadings[base] == saysConfirmed {
				return saysConfirmed, false
			}
		}
	}
	switch {
	case left && dated:
		return saysWhyLeft, false
	case dated: // when somebody came, but not whether they stayed
		return "", false
	}
	return "", left || slices.ContainsFunc(stateParts, has)
}

// bare returns a text in lower case with letters and digits only, and without accents.
func bare(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, norm.NFKD.String(text))
}

// stateWords are the bare words of cells.
var stateWords = map[State][]string{
	Subscribed: strings.Fields("subscribed subscribe active activated enabled confirmed verified optedin optin " +
		"doubleoptin singleoptin regular premium marketable valid deliverable ok angemeldet abonniert aktiv bestatigt abonne inscrit " +
		"actif confirme"),
	Pending: strings.Fields("pending unconfirmed notconfirmed unactivated notactivated unverified notverified " +
		"validating waiting awaitingconfirmation ausstehend unbestatigt enattente nonconfirme"),
	Left: strings.Fields("left unsubscribed unsubscribe unsub optedout optout neversubscribed nonsubscribed " +
		"notsubscribed cleaned bounced bounce hardbounce hardbounced softbounce softbounced complained complaint spam " +
		"markedasspam spamreport spamreported abuse abusereport junk blocklisted blacklisted blocked suppressed " +
		"disabled inactive deactivated deleted removed cancelled canceled unreachable undeliverable invalid archived " +
		"banned donotemail donotmail donotcontact stopped rejected revoked withdrawn denied declined abgemeldet " +
		"ausgetragen inaktiv gesperrt widerrufen geloscht desabonne desinscrit inactif bloque supprime"),
}

// stateOf reads the state in a column's cell. It returns None if the cell has none.
func (c *column) stateOf(cell string) (State, error) {
	word := bare(cell)
	for state, words := range stateWords {
		if c.target != saysWhyLeft && slices.Contains(words, word) {
			return state, nil
		}
	}
	yes, no := Subscribed, Left
	switch c.target {
	case saysUnsubscribed, saysWhyLeft:
		yes, no = Left, None
	case saysConfirmed:
		no = Pending
	}
	switch {
	case c.target == saysState:
	case slices.Contains([]string{"false", "no", "n", "0", "off", "nein", "non", "never", "null", "none",
		"na"}, word),
		strings.Trim(word, "0") == "" && (c.target != saysSubscribed || word != ""):
		return no, nil
	case slices.Contains([]string{"true", "yes", "y", "1", "on", "x", "ja", "j", "oui"}, word),
		len(word) >= 6 && word[0] >= '0' && word[0] <= '9', c.target == saysWhyLeft: // 6: a date
		return yes, nil
	}
	text := fmt.Sprintf("not %q", message.Clip(cell, 80))
	if word == "" {
		text = "and is empty"
	}
	return None, fmt.Errorf("%s must show whether the person is subscribed, pending or unsubscribed, %s; to "+
		"ignore the column, set the option columns without it",
		message.Clip(c.heading, 80), text)
}

// state returns a row's state. If several columns have one, the column that stops mail counts.
func (l *layout) state(cells []string) (State, error) {
	says := None
	var fault error
	for _, at := range l.states {
		cell := ""
		if at < len(cells) {
			cell = strings.TrimSpace(cells[at])
		}
		state, err := l.columns[at].stateOf(cell)
		switch {
		case state == Left:
			return Left, nil
		case err != nil && fault == nil && !l.left:
			fault = err
		case says != Pending && state != None:
			says = state
		}
	}
	return says, fault
}

// askColumn returns the question what a column means.
func askColumn(heading string) error {
	heading = message.Clip(heading, 80)
	return fmt.Errorf("has the column %q, which may tell who has unsubscribed. Either add %q to the option columns, or "+
		"set columns without it to ignore it", heading, heading+":state")
}
