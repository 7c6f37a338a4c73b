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
		f = is("bounced", api.ArrivedNo, "%s was taken by the relay, and came back%s.", quoted(c.Response))
	case c.Delivered:
		f = is("delivered", api.ArrivedYes, "%s was delivered: the server of %s took it; look into the spam "+
			"folder there.", q.Address())
	case c.State == "sent":
		f = is("sent", api.ArrivedUnknown, "%s was taken by the relay; nothing was reported since.")
	case c.State == "sending":
		f = is("sending", api.ArrivedNotYet, "%s is being sent.")
	case c.State == "deferred":
		f = is("delayed", api.ArrivedNotYet, "%s has not gone out yet: an attempt failed, and it is tried again%s.",
			quoted(c.Response))
	case c.State == "suppressed":
		f = is("suppressed", api.ArrivedNo, "%s was not sent to %s: the address is suppressed.", q.Address())
	case c.State == "unsubscribed":
		f = is("unsubscribed", api.ArrivedNo, "%s was not sent: %s had left the list before.", q.Address())
	case c.State == "inDoubt":
		f = is("inDoubt", api.ArrivedUnknown, "%s is in doubt: it is not known whether %s has it, because it may have been taken by "+
			"the relay when the connection or the process ended.", q.Address())
		f.Do = append(f.Do, q.step("Count it as sent", recipients+"?state=inDoubt", "campaign settle", c.Campaign,
			q.Address()))
	case c.State == "cancelled":
		f = is("cancelled", api.ArrivedNo, "%s was cancelled before it was sent to %s.", q.Address())
	default:
		f = is("refused", api.ArrivedNo, "%s failed, and no attempt will follow%s.", quoted(c.Response))
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
