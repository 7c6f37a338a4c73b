package api

import (
	"cmp"
	"time"
)

// Fragment is a piece of text. Pages show it as text, never as html.
type Fragment struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty" doc:"It matches the query"`
}

// Highlights are the parts of a message that match the query.
type Highlights struct {
	Subject []Fragment `json:"subject" doc:"The whole subject"`
	Text    []Fragment `json:"text" doc:"A passage of the text with the match"`
}

// FoundMessage is a result of a search. The search index keeps messages longer than the email log does.
type FoundMessage struct {
	QueueID    string        `json:"queueId"`
	Account    string        `json:"account"`
	MessageID  string        `json:"messageId"`
	Subject    string        `json:"subject"`
	From       string        `json:"from" doc:"Return path; empty for the null sender"`
	To         []string      `json:"to"`
	Status     MessageStatus `json:"status" enum:"queued,sending,sent,failed,cancelled,suppressed,dead" doc:"As last indexed"`
	Outcome    MessageStatus `json:"outcome,omitempty" enum:"unsubscribed,bounced,complained" doc:"What was told of it after a relay accepted it. The index does not have deliveries, opens and clicks"`
	Lane       Lane          `json:"lane" enum:"transactional,bulk"`
	Tags       []string      `json:"tags,omitempty"`
	Gateway    string        `json:"gateway,omitempty"`
	Code       string        `json:"code,omitempty" doc:"Of the last error: EAUTH, EENVELOPE, ESOCKET…"`
	SMTPCode   int           `json:"smtpCode,omitempty" doc:"The relay's reply code of the last error"`
	Created    time.Time     `json:"created"`
	Ended      *time.Time    `json:"ended,omitempty"`
	Highlights Highlights    `json:"highlights"`
}

// Stands returns the outcome of a message, or else its status.
func (m FoundMessage) Stands() MessageStatus { return cmp.Or(m.Outcome, m.Status) }

// FacetCount is the number of matches with a value.
type FacetCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// DocumentFacets are the numbers of matches by value, the most frequent first, at most 50 of each.
type DocumentFacets struct {
	Status  []FacetCount `json:"status"`
	Account []FacetCount `json:"account"`
	Tag     []FacetCount `json:"tag"`
	Lane    []FacetCount `json:"lane"`
}

// DocumentPage is a page of matching messages.
type DocumentPage struct {
	Total     int            `json:"total" doc:"Messages found"`
	Page      int            `json:"page"`
	Pages     int            `json:"pages" doc:"Pages there are; beyond the first 10,000 messages only cursor leads on"`
	Cursor    string         `json:"cursor,omitempty" doc:"Requests the messages after these; absent on the last page"`
	Documents []FoundMessage `json:"documents"`
	Facets    DocumentFacets `json:"facets"`
}

func (p DocumentPage) rows() ([]FoundMessage, string, int) { return p.Documents, p.Cursor, 0 }

// DocumentSort is the order of search results.
type DocumentSort string

// The orders.
const (
	SortNewest    DocumentSort = "newest"
	SortRelevance DocumentSort = "relevance"
)

// DocumentQuery searches for messages. The zero query matches all, newest first.
type DocumentQuery struct {
	Account string // only this account; over HTTP use the token, or account: in Q

	Q        string       `query:"q" maxLength:"4096" doc:"The query, at most 1,000 characters: words, \"phrases\", -not, OR, prefix*, and fields, see docs/missing-mail.md. Empty: everything"`
	Page     int          `query:"page" minimum:"0" doc:"Page, from 0. Pages end at 10,000 messages; use cursor for more"`
	PageSize int          `query:"pageSize" minimum:"1" maximum:"500" doc:"Messages a page; 20 when absent"`
	Sort     DocumentSort `query:"sort" enum:"newest,relevance" doc:"newest when absent; relevance: the best first"`
	Cursor   string       `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the messages after it; page is ignored"`
}

// DocumentsState is the state of the search index.
type DocumentsState struct {
	Store     string           `json:"store" enum:"embedded,opensearch,none" doc:"The setting documents.store"`
	Documents int              `json:"documents" doc:"Messages in the index"`
	Bytes     int64            `json:"bytes" doc:"Size of the index on disk; 0 when it is not known"`
	Waiting   int              `json:"waiting" doc:"Jobs in the queue documents, a few hundred messages each at most"`
	Paused    bool             `json:"paused" doc:"The queue documents is paused"`
	Lag       float64          `json:"lag" doc:"Seconds that the oldest job has been waiting"`
	Behind    *time.Time       `json:"behind,omitempty" doc:"The index misses changes since then, and takes them from the email log by itself once the queue is short; 1970: it is being filled"`
	Indexer   string           `json:"indexer,omitempty" doc:"The process that keeps the index: host and directory, or host and process"`
	Seen      *time.Time       `json:"seen,omitempty" doc:"When documents and bytes were counted"`
	Rebuild   *DocumentRebuild `json:"rebuild,omitempty" doc:"The rebuild that runs, or the last one"`
}

// DocumentRebuild is the progress of a rebuild of the search index.
type DocumentRebuild struct {
	Status  string     `json:"status" enum:"wanted,running,done,failed"`
	Wanted  time.Time  `json:"wanted"`
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	Done    int        `json:"done" doc:"Messages read so far"`
	Total   int        `json:"total" doc:"Messages to read"`
	Error   string     `json:"error,omitempty"`
}
