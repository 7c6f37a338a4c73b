package why

import (
	"cmp"
	"fmt"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/replies"
)

// campaignFate says how a campaign's mail ended that has no message in the email log.
func (q *question) campaignFate(c api.PersonalCampaign) fate {
	mail := fmt.Sprintf("The mail of the campaign “%s”", clip(cmp.Or(c.Name, c.Campaign), 60))
	if c.Run > 1 {
		mail += fmt.Sprintf(" (run %d)", c.Run)
	}
	is := func(kind, arrived, format string, args ...any) fate {
		return fate{finding(kind, c.Time, format, append([]any{mail}, args...)...), arrived}
	}
	recipients := "/campaigns/" + escaped(c.Campaign) + "/recipients"
	var f fate
	switch {
	case c.Complained:
		f = is("complained", api.ArrivedYes, "%s arrived, and %s reported it as spam.", q.Address())
	case c.Opened, c.Clicked, c.Left:
		verb := map[bool]string{true: "followed a link in it", false: "opened it"}[c.Clicked]
		if c.Left {
			verb = "unsubscribed by it"
		}
		f = is("opened", api.ArrivedYes, "%s arrived: %s %s.", q.Address(), verb)
	case c.State == "bounced":
		f = is("bounced", api.ArrivedNo, "%s was accepted by the relay and then "+
			"bounced%s.", quoted(c.Response))
	case c.Delivered:
		f = is("delivered", api.ArrivedYes, "%s was delivered: the server of %s accepted it. Look in the "+
			"spam folder there.", q.Address())
	case c.State == "sent":
		f = is("sent", api.ArrivedUnknown, "%s was accepted by the relay. Nothing has been reported since.")
	case c.State == "sending":
		f = is("sending", api.ArrivedNotYet, "%s is being sent.")
	case c.State == "deferred":
		f = is("delayed", api.ArrivedNotYet, "%s hasn't been sent yet: an attempt failed, and Postroom "+
			"retries it%s.",
			quoted(c.Response))
	case c.State == "suppressed":
		f = is("suppressed", api.ArrivedNo, "%s was not sent to %s: the address is suppressed.", q.Address())
	case c.State == "unsubscribed":
		f = is("unsubscribed", api.ArrivedNo, "%s was not sent, because %s had unsubscribed before.", q.Address())
	case c.State == "inDoubt":
		f = is("inDoubt", api.ArrivedUnknown, "%s is in doubt: the relay may have accepted it for %s when "+
			"the connection or the process ended.", q.Address())
		f.Do = append(f.Do, q.step("Count it as sent", recipients+"?state=inDoubt", "campaign settle", c.Campaign,
			q.Address()))
	case c.State == "cancelled":
		f = is("cancelled", api.ArrivedNo, "%s was cancelled before it was sent to %s.", q.Address())
	default:
		f = is("refused", api.ArrivedNo, "%s failed permanently%s.", quoted(c.Response))
	}
	switch f.Kind {
	case "bounced", "delayed", "refused":
		f.Explanation = meaning(replies.Reply{Text: c.Response})
	}
	f.QueueID = c.QueueID
	f.Do = append(f.Do, q.step("Show the campaign's recipients", recipients, "campaign recipients", c.Campaign,
		"--search", q.Address()))
	return f
}
