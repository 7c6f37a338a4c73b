package api

import (
	"encoding/json"
	"time"
)

// Segment is a stored rule that selects subscribers of an account.
type Segment struct {
	Segment string          `json:"segment,omitempty" maxLength:"63" doc:"Its id, unique in the instance: letters, digits, dot, - and _. When absent it is made from the name"`
	Account string          `json:"account,omitempty" maxLength:"256" doc:"Whose subscribers it selects; default when absent"`
	Name    string          `json:"name" minLength:"1" maxLength:"256"`
	Rule    json.RawMessage `json:"rule" doc:"{\"and\":[…]}, {\"or\":[…]}, {\"not\":…} or a term, such as {\"attribute\":\"plan\",\"is\":\"pro\"} or {\"campaign\":\"spring\",\"did\":\"opened\"} (got, opened or clicked); see the page about segments"`
}

// SegmentPatch changes the fields of a segment that it has.
type SegmentPatch struct {
	Version *int            `json:"version,omitempty" doc:"The version that the change is based on: if the segment was changed since, 409 SegmentChanged"`
	Name    *string         `json:"name,omitempty" minLength:"1" maxLength:"256"`
	Rule    json.RawMessage `json:"rule,omitempty"`
}

// SegmentInfo is a segment with what its rule says.
type SegmentInfo struct {
	Segment
	Sentence string    `json:"sentence" doc:"The rule in words"`
	Warnings []string  `json:"warnings" doc:"Attributes that no subscriber ever had, or had with another type only; lists and campaigns that do not exist; campaigns that were not sent yet"`
	Version  int       `json:"version" doc:"Raised by each change"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
}

// SegmentPage is a page of segments.
type SegmentPage struct {
	PageNumbers
	Segments []SegmentInfo `json:"segments"`
}

func (p SegmentPage) rows() ([]SegmentInfo, string, int) { return p.Segments, "", p.Pages }

// SegmentQuery selects segments.
type SegmentQuery struct {
	PageQuery
	Account string `query:"account" maxLength:"256" doc:"Only segments of this account; when absent that of the token, else all"`
}

// SegmentCount is the progress and the result of counting a segment.
type SegmentCount struct {
	State   string       `json:"state" enum:"running,done,failed,interrupted" doc:"interrupted: the process that counted has ended; start again"`
	Done    int          `json:"done" doc:"Subscribers that were looked at"`
	Total   int          `json:"total" doc:"Subscribers of the account"`
	Count   int          `json:"count" doc:"Those of them that the rule selects"`
	Sample  []Subscriber `json:"sample" doc:"Up to 20 of these, chosen at random; when the count is done"`
	Version int          `json:"version" doc:"Of the segment that is counted"`
	Started time.Time    `json:"started"`
	Updated time.Time    `json:"updated"`
	Error   string       `json:"error,omitempty" doc:"Why it failed"`
}

// SegmentSubject asks why a subscriber is in a segment, or not.
type SegmentSubject struct {
	Subscriber string `query:"subscriber" minLength:"1" maxLength:"512" doc:"Id or address of the subscriber"`
}

// SegmentTerm is a term of a rule with what it says of a subscriber.
type SegmentTerm struct {
	Text  string `json:"text" doc:"The term in words"`
	Value string `json:"value,omitempty" doc:"What the subscriber has; absent: nothing"`
	Holds bool   `json:"holds"`
}

// SegmentExplanation says why a subscriber is in a segment, or not.
type SegmentExplanation struct {
	In    bool          `json:"in"`
	Terms []SegmentTerm `json:"terms"`
}
