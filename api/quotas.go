package api

import "time"

// Quota is how much an account may have. An absent field means what the setting says, 0 any number.
type Quota struct {
	Messages     *int `json:"messages,omitempty" minimum:"0" doc:"Maximum pending messages: queued, delayed or being sent"`
	Bytes        *int `json:"bytes,omitempty" minimum:"0" doc:"Maximum total size of pending messages in bytes"`
	PerDay       *int `json:"perDay,omitempty" minimum:"0" doc:"Maximum messages accepted per day (UTC)"`
	Templates    *int `json:"templates,omitempty" minimum:"0" doc:"Maximum templates, partials and layouts"`
	Suppressions *int `json:"suppressions,omitempty" minimum:"0" doc:"Maximum suppressions of the account and its lists that requests can add. Bounces, complaints and unsubscribes are always added"`
	ImportSize   *int `json:"importSize,omitempty" minimum:"0" doc:"Maximum size of a suppression or subscriber import in bytes"`
	Subscribers  *int `json:"subscribers,omitempty" minimum:"0" doc:"Maximum subscribers, on any number of lists"`
	Events       *int `json:"events,omitempty" minimum:"0" doc:"Maximum pending digest events"`
	Requests     *int `json:"requests,omitempty" minimum:"0" doc:"Maximum requests per minute with each token that is bound to the account and has no rateLimit"`
}

// TokenQuota limits what may be submitted with a token. Zero or absent: any number, within the quota of the
// account.
type TokenQuota struct {
	Messages int `json:"messages,omitempty" minimum:"0" doc:"Maximum pending messages: queued, delayed or being sent"`
	Bytes    int `json:"bytes,omitempty" minimum:"0" doc:"Maximum total size of pending messages in bytes"`
	PerDay   int `json:"perDay,omitempty" minimum:"0" doc:"Maximum messages accepted per day (UTC)"`
}

// QuotaUse is what of a quota is used.
type QuotaUse struct {
	Used  int        `json:"used"`
	Limit int        `json:"limit,omitempty" doc:"The limit. Absent without a limit"`
	Until *time.Time `json:"until,omitempty" doc:"When the count restarts"`
}

// Usage is what an account, or a token, uses of its quotas.
type Usage struct {
	Account      string    `json:"account,omitempty"`
	Token        string    `json:"token,omitempty" doc:"ID of the token. Only messages submitted with it count"`
	Messages     QuotaUse  `json:"messages" doc:"Pending messages: queued, delayed or being sent. Dead letters don't count"`
	Bytes        QuotaUse  `json:"bytes" doc:"Total size of pending messages in bytes"`
	PerDay       QuotaUse  `json:"perDay" doc:"Messages accepted today (UTC)"`
	Templates    *QuotaUse `json:"templates,omitempty" doc:"Templates, partials and layouts. Absent for a token"`
	Suppressions *QuotaUse `json:"suppressions,omitempty" doc:"Suppressions of the account and its lists. Absent for a token"`
	ImportSize   *QuotaUse `json:"importSize,omitempty" doc:"Maximum size of a suppression or subscriber import in bytes, as limit. Absent for a token"`
	Subscribers  *QuotaUse `json:"subscribers,omitempty" doc:"Subscribers of the account. Absent for a token"`
	Events       *QuotaUse `json:"events,omitempty" doc:"Pending digest events. Absent for a token"`
	Requests     *QuotaUse `json:"requests,omitempty" doc:"Maximum requests per minute with each bound token without rateLimit, as limit. Absent for a token"`
}
