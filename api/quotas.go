package api

import "time"

// Quota is how much an account may have. An absent field means what the setting says, 0 any number.
type Quota struct {
	Messages     *int `json:"messages,omitempty" minimum:"0" doc:"Messages that wait: queued, delayed or being sent"`
	Bytes        *int `json:"bytes,omitempty" minimum:"0" doc:"Bytes of the messages that wait, as they are sent"`
	PerDay       *int `json:"perDay,omitempty" minimum:"0" doc:"Messages accepted in a day (UTC)"`
	Templates    *int `json:"templates,omitempty" minimum:"0" doc:"Templates, partials and layouts of the account"`
	Suppressions *int `json:"suppressions,omitempty" minimum:"0" doc:"Suppressions of the account and of its lists, beyond which none are added by request. Bounces, complaints and unsubscribes always are"`
	ImportSize   *int `json:"importSize,omitempty" minimum:"0" doc:"Bytes of one import of suppressions or subscribers"`
	Subscribers  *int `json:"subscribers,omitempty" minimum:"0" doc:"Subscribers of the account, on any number of lists"`
	Events       *int `json:"events,omitempty" minimum:"0" doc:"Events that wait for the digests of the account's recipients"`
	Requests     *int `json:"requests,omitempty" minimum:"0" doc:"Requests in a minute with each token that is bound to the account and has no rateLimit"`
}

// TokenQuota is how much may be handed in with a token. Zero or absent: any number, within the quota of the
// account.
type TokenQuota struct {
	Messages int `json:"messages,omitempty" minimum:"0" doc:"Messages that wait: queued, delayed or being sent"`
	Bytes    int `json:"bytes,omitempty" minimum:"0" doc:"Bytes of the messages that wait, as they are sent"`
	PerDay   int `json:"perDay,omitempty" minimum:"0" doc:"Messages accepted in a day (UTC)"`
}

// QuotaUse is what of a quota is used.
type QuotaUse struct {
	Used  int        `json:"used"`
	Limit int        `json:"limit,omitempty" doc:"Absent: none"`
	Until *time.Time `json:"until,omitempty" doc:"When counting begins again"`
}

// Usage is what an account, or a token, uses of its quotas.
type Usage struct {
	Account      string    `json:"account,omitempty"`
	Token        string    `json:"token,omitempty" doc:"Id of the token; only messages handed in with it count"`
	Messages     QuotaUse  `json:"messages" doc:"Messages that wait: queued, delayed or being sent. Dead letters do not count"`
	Bytes        QuotaUse  `json:"bytes" doc:"Bytes of the messages that wait, as they are sent"`
	PerDay       QuotaUse  `json:"perDay" doc:"Messages accepted today (UTC)"`
	Templates    *QuotaUse `json:"templates,omitempty" doc:"Templates, partials and layouts of the account; absent for a token"`
	Suppressions *QuotaUse `json:"suppressions,omitempty" doc:"Suppressions of the account and of its lists; absent for a token"`
	ImportSize   *QuotaUse `json:"importSize,omitempty" doc:"limit: bytes of one import of suppressions or subscribers; absent for a token"`
	Subscribers  *QuotaUse `json:"subscribers,omitempty" doc:"Subscribers of the account; absent for a token"`
	Events       *QuotaUse `json:"events,omitempty" doc:"Events that wait for digests; absent for a token"`
	Requests     *QuotaUse `json:"requests,omitempty" doc:"limit: requests in a minute with each token bound to the account that has no rateLimit; absent for a token"`
}
