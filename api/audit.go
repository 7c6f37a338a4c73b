package api

import "time"

// AuditResult is what became of a change.
type AuditResult string

// The results of changes.
const (
	// AuditBegun is a change without a result: its process died, or it takes more than ten minutes.
	AuditBegun   AuditResult = "begun"
	AuditDone    AuditResult = "done"
	AuditRefused AuditResult = "refused" // nothing was changed: reason says why
	AuditFailed  AuditResult = "failed"  // an error; what was done of it is unknown
)

// AuditActor is who did something.
type AuditActor struct {
	Kind    string `json:"kind" doc:"token, person (in a session), session (of the pages, opened with a token), smtp, anonymous (without a valid token), or system"`
	TokenID string `json:"tokenId,omitempty" doc:"Id of the token, also of the one that opened the session"`
	Name    string `json:"name,omitempty" doc:"Description of the token, or name of the person. Of an unauthenticated client whose login was refused: the person of that name"`
	Account string `json:"account,omitempty" doc:"The account that the token is bound to, or that the session of the person acts for"`
	Session string `json:"session,omitempty" doc:"Beginning of the hash of the session's cookie: the same for all that was done in it"`
	Address string `json:"address,omitempty" doc:"Address of the client"`
}

// AuditObject is what something was done to.
type AuditObject struct {
	Kind    string `json:"kind" doc:"account, gateway, dkim, template, token, person, session, endpoint, settings, queue, message, suppression, list, segment, subscriber, campaign, digestKind, digestRecipient, digestRun or documents"`
	ID      string `json:"id,omitempty"`
	Account string `json:"account,omitempty" doc:"The account that it belongs to"`
}

// AuditChange is a field that was changed. Secrets are masked.
type AuditChange struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty" doc:"Absent: there was none"`
	After  string `json:"after,omitempty" doc:"Absent: there is none"`
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	Seq     int64         `json:"seq" doc:"Number of the entry, from 1, without gaps"`
	ID      string        `json:"id" doc:"Position in the log, for cursors"`
	Time    time.Time     `json:"time"`
	Result  AuditResult   `json:"result" doc:"done, refused, failed, or begun: the process of the change died, or the change takes more than ten minutes"`
	Action  string        `json:"action" doc:"Method and route, such as PUT /v1/account/{account}; or login, logout, smtp login, secret rotate"`
	Who     AuditActor    `json:"who"`
	Object  *AuditObject  `json:"object,omitempty"`
	Changes []AuditChange `json:"changes,omitempty" doc:"Fields that differ after the change. Of a change that has no single record: what was asked for"`
	Reason  string        `json:"reason,omitempty" doc:"Why it was refused, or failed"`
	Count   int           `json:"count,omitempty" doc:"How many refusals or logins this entry counts"`
	Since   *time.Time    `json:"since,omitempty" doc:"Time of the first refusal or login that the entry counts; when a change with the result begun began"`
	Request string        `json:"requestId,omitempty"`
	Nonce   string        `json:"nonce" doc:"Random, so that no two entries are the same"`
	Prev    string        `json:"prev" doc:"hash of the entry before; empty: this is the first"`
	Hash    string        `json:"hash,omitempty" doc:"SHA-256 of the entry's text: this line without hash, key and mac"`
	Key     string        `json:"key,omitempty" doc:"Which secret signed hash"`
	MAC     string        `json:"mac,omitempty" doc:"HMAC-SHA-256 of hash, by a key of the instance's secret"`
}

// AuditQuery selects entries. Times include From and exclude To.
type AuditQuery struct {
	Who      string      `query:"who" maxLength:"256" doc:"Only by this: name of a token, its id or the first 6 digits or more of it, a session, a client's address, of a person, or token, session, person, smtp, anonymous, system"`
	Kind     string      `query:"kind" enum:"account,gateway,dkim,template,token,person,session,endpoint,settings,queue,message,suppression,list,segment,subscriber,campaign,documents" doc:"Only about objects of this kind"`
	ID       string      `query:"id" maxLength:"256" doc:"Only about the object of this id"`
	Account  string      `query:"account" maxLength:"256" doc:"Only about what belongs to this account, or by a token bound to it"`
	Result   AuditResult `query:"result" enum:"begun,done,refused,failed" doc:"Only with this result"`
	From     time.Time   `query:"from" doc:"Only from this time on"`
	To       time.Time   `query:"to" doc:"Only before this time"`
	Oldest   bool        `query:"oldest" enum:"true,false" doc:"true: the oldest first"`
	Cursor   string      `query:"cursor" maxLength:"64" doc:"The cursor of an earlier answer: the entries after it. An answer may have no entries, and more nevertheless"`
	PageSize int         `query:"pageSize" minimum:"1" maximum:"1000" doc:"Entries at most; 50 when absent"`
}

// AuditPage is a part of the audit log.
type AuditPage struct {
	Entries []AuditEntry `json:"entries"`
	Cursor  string       `json:"cursor,omitempty" doc:"For the entries after these. With oldest it is in every answer, to ask for new entries later"`
	More    bool         `json:"more" doc:"There may be more now"`
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

// AuditVerifyQuery names an entry that the log had.
type AuditVerifyQuery struct {
	Seq  int64  `query:"seq" minimum:"1" doc:"Number of an entry that the log had, such as a former head; hash is needed too"`
	Hash string `query:"hash" pattern:"^[0-9a-f]{64}$" doc:"Its hash"`
}

// AuditVerified is the result of a verification of the whole log.
type AuditVerified struct {
	Intact     bool           `json:"intact"`
	Entries    int64          `json:"entries"`
	First      int64          `json:"first" doc:"seq of the oldest entry that is kept"`
	Head       AuditHead      `json:"head" doc:"The newest entry. Keep it elsewhere: with it a later verification shows that nothing was cut off"`
	Unfinished []int64        `json:"unfinished" doc:"seq of the entries with the result begun, 100 at most"`
	Problems   []AuditProblem `json:"problems" doc:"100 at most"`
	Time       time.Time      `json:"time"`
}

// AuditProblem is a place where the log was tampered with.
type AuditProblem struct {
	Seq  int64  `json:"seq,omitempty"`
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
}
