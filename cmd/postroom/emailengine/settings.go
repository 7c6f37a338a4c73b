package emailengine

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

func settingNames() []string {
	return slices.Concat([]string{"webhooks", "webhookEvents", "webhooksCustomHeaders", "webhooksEnabled",
		"deliveryAttempts", "queueKeep", "ignoreMailCertErrors", "proxyEnabled", "proxyUrl"},
		slices.Sorted(maps.Keys(elsewhere)))
}

// elsewhere are settings of EmailEngine that bear on sending and are not taken, with what to do instead.
var elsewhere = map[string]string{
	"trackSentMessages": "set trackOpens and trackClicks, and serviceUrl",
	"trackOpens":        "set trackOpens, and serviceUrl",
	"trackClicks":       "set trackClicks, and serviceUrl",
	"smtpServerEnabled": "set smtpd.listen of the configuration",
	"smtpEhloName":      "set smtpEhloName of the accounts",
	"localAddresses":    "set localAddress of the accounts",
	"authServer":        "accounts and gateways have their passwords in Postroom",
}

// values are settings as JSON. Absent ones are null or not in it.
type values map[string]json.RawMessage

// get returns a setting; the zero value if it is absent or of another type.
func get[T any](v values, name string) (value T) {
	if json.Unmarshal(v[name], &value) != nil {
		return *new(T)
	}
	return value
}

func (v values) relays(o opener) relays {
	r := relays{opener: o, anyCertificate: get[bool](v, "ignoreMailCertErrors")}
	if get[bool](v, "proxyEnabled") {
		r.proxy = get[string](v, "proxyUrl")
	}
	return r
}

// into puts the settings into what was found.
func (v values) into(f *Found) {
	s, p := &f.Settings.Value, &f.Settings
	if address := webhooks(get[string](v, "webhooks"), &p.Lacks); address != "" {
		s.Webhooks = &address
	}
	if events := get[[]string](v, "webhookEvents"); len(events) > 0 {
		s.WebhookEvents = &events
	}
	s.WebhooksEnabled = get[*bool](v, "webhooksEnabled")
	s.DeliveryAttempts, s.QueueKeep = get[*int](v, "deliveryAttempts"), get[*int](v, "queueKeep")
	headers := get[[]api.CustomHeader](v, "webhooksCustomHeaders")
	if slices.ContainsFunc(headers, func(h api.CustomHeader) bool { return hidden(h.Value) }) {
		p.Lacks = append(p.Lacks, "webhooksCustomHeaders: EmailEngine's API does not show their values; set them yourself")
	} else if len(headers) > 0 {
		s.WebhooksCustomHeaders = &headers
	}
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		switch text := strings.TrimSpace(string(v[name])); text {
		case "", "null", "false", `""`, "[]":
		default:
			f.Unfit = append(f.Unfit, Unfit{"setting", name, elsewhere[name]})
		}
	}
}
