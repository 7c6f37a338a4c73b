package api

import "time"

// HookState says how a webhook at a provider compares with the one that Postroom needs.
type HookState string

// The states of a webhook.
const (
	HookUnset   HookState = "unset"   // the provider has none with this address
	HookOK      HookState = "ok"      // the provider reports to this address
	HookWrong   HookState = "wrong"   // it is off, lacks events, or has another secret
	HookUnknown HookState = "unknown" // nobody asked since the last change, or the provider couldn't be asked
)

// GatewayWebhook is the webhook by which a gateway's provider reports bounces and deliveries.
type GatewayWebhook struct {
	URL     string     `json:"url,omitempty" doc:"URL that the provider posts to. Absent without the setting serviceUrl"`
	State   HookState  `json:"state" enum:"unset,ok,wrong,unknown" doc:"Result of the check. It is wrong if the webhook is off, lacks events or has another secret. It is unknown if it wasn't compared since the last change, or if the provider can't report it"`
	Checked *time.Time `json:"checked,omitempty" doc:"When the provider was last asked"`
	Error   string     `json:"error,omitempty" doc:"The problem and how to fix it"`
}

// GatewayWebhookRequest asks for the webhook of a gateway.
type GatewayWebhookRequest struct {
	Check bool `json:"check,omitempty" doc:"Whether to only compare, without changing anything at the provider"`
}

// GatewayDomain is a domain that a provider knows as a sender's. Fields that the provider doesn't tell are
// absent.
type GatewayDomain struct {
	Name       string `json:"name"`
	Verified   bool   `json:"verified" doc:"Whether the provider sends messages from this domain"`
	SPF        *bool  `json:"spf,omitempty" doc:"Whether its SPF record permits the provider"`
	DKIM       *bool  `json:"dkim,omitempty" doc:"Whether its DKIM record has the provider's key"`
	ReturnPath *bool  `json:"returnPath,omitempty" doc:"Whether its custom return path leads to the provider"`
}

// GatewayDomains lists the sender domains that a gateway's provider knows.
type GatewayDomains struct {
	Domains []GatewayDomain `json:"domains"`
}
