package api

import (
	"cmp"
	"time"
)

// Fragment is a piece of text. Pages show it as text, never as html.
type Fragment struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty" doc:"Whether this fragment matches the query"`
}

// Highlights are the parts of a message that match the query.
type Highlights struct {
	Subject []Fragment `json:"subject" doc:"The whole subject"`
	Text    []Fragment `json:"text" doc:"Passage of the text that contains the match"`
}

// FoundMessage is a result of a search. The search index keeps messages longer than the email log does.
type FoundMessage struct {
	QueueID    string        `json:"queueId"`
	Account    string        `json:"account"`
	MessageID  string        `json:"messageId"`
	Subject    string        `json:"subject"`
	From       string        `json:"from" doc:"Return path. Empty for the null sender"`
	To         []string      `json:"to"`
	Status     MessageStatus `json:"status" enum:"queued,sending,sent,failed,cancelled,suppressed,dead" doc:"Status as last indexed"`
	Outcome    MessageStatus `json:"outcome,omitempty" enum:"unsubscribed,bounced,complained" doc:"Outcome reported after the relay accepted the message. The index doesn't record deliveries, opens and clicks"`
	Lane       Lane          `json:"lane" enum:"transactional,bulk"`
	Tags       []string      `json:"tags,omitempty"`
	Gateway    string        `json:"gateway,omitempty"`
	Code       string        `json:"code,omitempty" doc:"Code of the last error, such as EAUTH, EENVELOPE or ESOCKET"`
	SMTPCode   int           `json:"smtpCode,omitempty" doc:"SMTP code of the last error"`
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
	Total     int            `json:"total" doc:"Number of matching messages"`
	Page      int            `json:"page"`
	Pages     int            `json:"pages" doc:"Number of pages. Use cursor beyond the first 10,000 messages"`
	Cursor    string         `json:"cursor,omitempty" doc:"Cursor for the next messages. Absent on the last page"`
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

	Q        string       `query:"q" maxLength:"4096" doc:"Query of at most 1,000 characters: words, \"phrases\", -not, OR, prefix* and fields. See docs/missing-mail.md. Empty matches everything"`
	Page     int          `query:"page" minimum:"0" doc:"Page number, starting at 0. For more than 10,000 messages use cursor"`
	PageSize int          `query:"pageSize" minimum:"1" maximum:"500" doc:"Messages per page. Defaults to 20"`
	Sort     DocumentSort `query:"sort" enum:"newest,relevance" doc:"Order. Defaults to newest. relevance lists the best matches first"`
	Cursor   string       `query:"cursor" maxLength:"1024" doc:"Cursor from an earlier response, to continue after it. Overrides page"`
}

// DocumentsState is the state of the search index.
type DocumentsState struct {
	Store     string           `json:"store" enum:"embedded,opensearch,none" doc:"The setting documents.store"`
	Documents int              `json:"documents" doc:"Number of messages in the index"`
	Bytes     int64            `json:"bytes" doc:"Size of the index on disk in bytes. 0 if unknown"`
	Waiting   int              `json:"waiting" doc:"Number of jobs in the queue documents, each with up to a few hundred messages"`
	Paused    bool             `json:"paused" doc:"Whether the queue documents is paused"`
	Lag       float64          `json:"lag" doc:"Age of the oldest waiting job in seconds"`
	Behind    *time.Time       `json:"behind,omitempty" doc:"Time since which the index lacks changes. It reads them from the email log automatically when the queue is short. 1970 while the index is first filled"`
	Indexer   string           `json:"indexer,omitempty" doc:"Process that maintains the index, as host and directory or host and process"`
	Seen      *time.Time       `json:"seen,omitempty" doc:"When documents and bytes were counted"`
	Rebuild   *DocumentRebuild `json:"rebuild,omitempty" doc:"The running rebuild, or the last one"`
}

// DocumentRebuild is the progress of rebuilding the search index.
type DocumentRebuild struct {
	Status  string     `json:"status" enum:"wanted,running,done,failed"`
	Wanted  time.Time  `json:"wanted"`
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	Done    int        `json:"done" doc:"Number of messages read so far"`
	Total   int        `json:"total" doc:"Number of messages to read"`
	Error   string     `json:"error,omitempty"`
}
