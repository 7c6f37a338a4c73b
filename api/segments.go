package api

import (
	"encoding/json"
	"time"
)

// Segment is a stored rule that selects subscribers of an account.
type Segment struct {
	Segment string          `json:"segment,omitempty" maxLength:"63" doc:"ID, unique in the instance: letters, digits, dot, - and _. Defaults to an ID made from the name"`
	Account string          `json:"account,omitempty" maxLength:"256" doc:"Account whose subscribers it selects. Defaults to default"`
	Name    string          `json:"name" minLength:"1" maxLength:"256"`
	Rule    json.RawMessage `json:"rule" doc:"{\"and\":[…]}, {\"or\":[…]}, {\"not\":…} or a term, such as {\"attribute\":\"plan\",\"is\":\"pro\"} or {\"campaign\":\"spring\",\"did\":\"opened\"} (got, opened or clicked). See docs/segments.md"`
}

// SegmentPatch changes the fields of a segment that it has.
type SegmentPatch struct {
	Version *int            `json:"version,omitempty" doc:"Version that your change is based on. If the segment has changed since, the response is 409 SegmentChanged"`
	Name    *string         `json:"name,omitempty" minLength:"1" maxLength:"256"`
	Rule    json.RawMessage `json:"rule,omitempty"`
}

// SegmentInfo is a segment with a description of its rule.
type SegmentInfo struct {
	Segment
	Sentence string    `json:"sentence" doc:"Description of the rule"`
	Warnings []string  `json:"warnings" doc:"Warnings about the rule: attributes that no subscriber has had, or only with another type; lists and campaigns that don't exist; campaigns that weren't sent yet"`
	Version  int       `json:"version" doc:"Version number, raised by each change"`
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
	Account string `query:"account" maxLength:"256" doc:"Filter by account. Defaults to the token's account, or to all"`
}

// SegmentCount is the progress and the result of counting a segment.
type SegmentCount struct {
	State   string       `json:"state" enum:"running,done,failed,interrupted" doc:"State of the count. If it was interrupted because its process ended, start it again"`
	Done    int          `json:"done" doc:"Subscribers checked so far"`
	Total   int          `json:"total" doc:"Subscribers of the account"`
	Count   int          `json:"count" doc:"Subscribers that the rule selects"`
	Sample  []Subscriber `json:"sample" doc:"Up to 20 of these subscribers, chosen at random. Only when the count is done"`
	Version int          `json:"version" doc:"Version of the segment that is counted"`
	Started time.Time    `json:"started"`
	Updated time.Time    `json:"updated"`
	Error   string       `json:"error,omitempty" doc:"Why it failed"`
}

// SegmentSubject names the subscriber to explain.
type SegmentSubject struct {
	Subscriber string `query:"subscriber" minLength:"1" maxLength:"512" doc:"ID or address of the subscriber"`
}

// SegmentTerm is a term of a rule with its result for a subscriber.
type SegmentTerm struct {
	Text  string `json:"text" doc:"Description of the term"`
	Value string `json:"value,omitempty" doc:"The subscriber's value. Absent if there is none"`
	Holds bool   `json:"holds"`
}

// SegmentExplanation explains why a subscriber is in a segment or not.
type SegmentExplanation struct {
	In    bool          `json:"in"`
	Terms []SegmentTerm `json:"terms"`
}
