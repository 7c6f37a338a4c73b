package api

import "time"

// AuditResult is the result of a change.
type AuditResult string

// The results of changes.
const (
	// AuditBegun is a change without a result: its process died, or it takes more than ten minutes.
	AuditBegun   AuditResult = "begun"
	AuditDone    AuditResult = "done"
	AuditRefused AuditResult = "refused" // nothing was changed, for the given reason
	AuditFailed  AuditResult = "failed"  // an error; it is unknown how much was changed
)

// AuditActor is the user, token or client that made a change.
type AuditActor struct {
	Kind    string `json:"kind" doc:"Type of actor: token, person (a signed-in user), session (the dashboard, opened with a token), smtp, anonymous (no valid token) or system"`
	TokenID string `json:"tokenId,omitempty" doc:"ID of the token, or of the token that opened the session"`
	Name    string `json:"name,omitempty" doc:"The token's description or the user's name. For a refused login, the name that the client used"`
	Account string `json:"account,omitempty" doc:"Account that the token is bound to, or that the user's session acts for"`
	Session string `json:"session,omitempty" doc:"Start of the hash of the session cookie. The same for everything done in the session"`
	Address string `json:"address,omitempty" doc:"Client's address"`
}

// AuditObject is the object of a change.
type AuditObject struct {
	Kind    string `json:"kind" doc:"Type of object: account, gateway, dkim, template, token, person, session, endpoint, settings, queue, message, suppression, list, segment, subscriber, campaign, digestKind, digestRecipient, digestRun or documents"`
	ID      string `json:"id,omitempty"`
	Account string `json:"account,omitempty" doc:"Account that the object belongs to"`
}

// AuditChange is a field that was changed. Secrets are masked.
type AuditChange struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty" doc:"Value before the change. Absent if there was none"`
	After  string `json:"after,omitempty" doc:"Value after the change. Absent if there is none"`
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	Seq     int64         `json:"seq" doc:"Number of the entry, starting at 1, without gaps"`
	ID      string        `json:"id" doc:"Position in the log, for cursors"`
	Time    time.Time     `json:"time"`
	Result  AuditResult   `json:"result" doc:"Outcome: done, refused, failed, or begun. An entry stays begun if the process died, or if the change takes more than ten minutes"`
	Action  string        `json:"action" doc:"Method and route, such as PUT /v1/account/{account}, or login, logout, smtp login or secret rotate"`
	Who     AuditActor    `json:"who"`
	Object  *AuditObject  `json:"object,omitempty"`
	Changes []AuditChange `json:"changes,omitempty" doc:"Fields that the change modified. If the change doesn't concern a single record, the requested values"`
	Reason  string        `json:"reason,omitempty" doc:"Why it was refused or failed"`
	Count   int           `json:"count,omitempty" doc:"Number of refusals or logins in this entry"`
	Since   *time.Time    `json:"since,omitempty" doc:"Time of the first refusal or login in this entry. For the result begun, the start of the change"`
	Request string        `json:"requestId,omitempty"`
	Nonce   string        `json:"nonce" doc:"Random value that makes each entry unique"`
	Prev    string        `json:"prev" doc:"Hash of the previous entry. Empty in the first entry"`
	Hash    string        `json:"hash,omitempty" doc:"SHA-256 hash of the entry's text, which is this line without hash, key and mac"`
	Key     string        `json:"key,omitempty" doc:"ID of the secret that signed the hash"`
	MAC     string        `json:"mac,omitempty" doc:"HMAC-SHA-256 of the hash, with a key derived from the instance's secret"`
}

// AuditQuery selects entries. Times include From and exclude To.
type AuditQuery struct {
	Who      string      `query:"who" maxLength:"256" doc:"Filter by actor: a token's name, its ID or at least its first 6 digits, a session, a client address, a user's name, or the type token, session, person, smtp, anonymous or system"`
	Kind     string      `query:"kind" enum:"account,gateway,dkim,template,token,person,session,endpoint,settings,queue,message,suppression,list,segment,subscriber,campaign,documents" doc:"Filter by type of object"`
	ID       string      `query:"id" maxLength:"256" doc:"Filter by ID of the object"`
	Account  string      `query:"account" maxLength:"256" doc:"Filter by account: its objects, and changes by tokens bound to it"`
	Result   AuditResult `query:"result" enum:"begun,done,refused,failed" doc:"Filter by result"`
	From     time.Time   `query:"from" doc:"Start of the period (inclusive)"`
	To       time.Time   `query:"to" doc:"End of the period (exclusive)"`
	Oldest   bool        `query:"oldest" enum:"true,false" doc:"Whether to list the oldest entries first"`
	Cursor   string      `query:"cursor" maxLength:"64" doc:"Cursor from an earlier response, to continue after it. A page can be empty although more entries follow"`
	PageSize int         `query:"pageSize" minimum:"1" maximum:"1000" doc:"Maximum number of entries. Defaults to 50"`
}

// AuditPage is a part of the audit log.
type AuditPage struct {
	Entries []AuditEntry `json:"entries"`
	Cursor  string       `json:"cursor,omitempty" doc:"Cursor for the next entries. With oldest, every response has one, so that you can ask for new entries later"`
	More    bool         `json:"more" doc:"Whether more entries may be available now"`
}

func (p AuditPage) rows() ([]AuditEntry, string, int) {
	if !p.More {
		return p.Entries, "", 0
	}
	return p.Entries, p.Cursor, 0
}

// AuditHead names an entry and all before it.
type AuditHead struct {
	Seq  int64  `json:"seq"`
	ID   string `json:"id"`
	Hash string `json:"hash"`
}

// AuditVerifyQuery names an entry that the log once had.
type AuditVerifyQuery struct {
	Seq  int64  `query:"seq" minimum:"1" doc:"Number of an entry that the log once had, such as an earlier head. Requires hash"`
	Hash string `query:"hash" pattern:"^[0-9a-f]{64}$" doc:"Hash of that entry"`
}

// AuditVerified is the result of checking the audit log.
type AuditVerified struct {
	Intact     bool           `json:"intact"`
	Entries    int64          `json:"entries"`
	First      int64          `json:"first" doc:"Number (seq) of the oldest stored entry"`
	Head       AuditHead      `json:"head" doc:"The newest entry. Store it elsewhere: a later check can then prove that nothing was cut off"`
	Unfinished []int64        `json:"unfinished" doc:"Numbers (seq) of entries with the result begun, at most 100"`
	Problems   []AuditProblem `json:"problems" doc:"Problems found, at most 100"`
	Time       time.Time      `json:"time"`
}

// AuditProblem is a place where the log was tampered with.
type AuditProblem struct {
	Seq  int64  `json:"seq,omitempty"`
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
}
