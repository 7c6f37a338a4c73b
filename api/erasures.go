package api

import (
	"encoding/json"
	"time"
)

// ErasureRequest names a person by their address.
type ErasureRequest struct {
	Email   string `json:"email" minLength:"3" maxLength:"254" doc:"Address of the person"`
	Account string `json:"account,omitempty" maxLength:"256" doc:"Limit the request to this account's data. Defaults to the token's account, or to all accounts"`
}

// The states of an erasure.
const (
	ErasureWaiting = "waiting" // no process works on it yet
	ErasureRunning = "running"
	ErasureDone    = "done"
)

// Erasure is the receipt of an erasure. It names nobody.
type Erasure struct {
	ID        string        `json:"id"`
	State     string        `json:"state" enum:"waiting,running,done"`
	Account   string        `json:"account,omitempty" doc:"Account. Absent for all accounts"`
	Person    string        `json:"person" doc:"Keyed hash of the address, the same in each erasure of the person"`
	Place     string        `json:"place,omitempty" doc:"Place that is being searched"`
	Places    ErasurePlaces `json:"places" doc:"Number of items found and erased in each place"`
	Remaining []string      `json:"remaining" doc:"Places where Postroom didn't or can't erase the person"`
	Created   time.Time     `json:"created"`
	Ended     *time.Time    `json:"ended,omitempty"`
	Trouble   string        `json:"trouble,omitempty" doc:"Why the last attempt failed. Postroom retries it"`
}

// ErasurePlaces counts what was erased.
type ErasurePlaces struct {
	Subscribers  int `json:"subscribers" doc:"Subscriber records"`
	Lists        int `json:"lists" doc:"Subscriptions"`
	Campaigns    int `json:"campaigns" doc:"Campaign runs that included the person"`
	Outbox       int `json:"outbox" doc:"Live messages that were cancelled, or that continue without the person"`
	DeadLetters  int `json:"deadLetters"`
	Messages     int `json:"messages" doc:"Entries in the email log"`
	Events       int `json:"events" doc:"Past events that webhooks could replay"`
	Documents    int `json:"documents" doc:"Documents in the search index"`
	Digests      int `json:"digests" doc:"Digest recipients, with their pending events and runs"`
	Deliveries   int `json:"deliveries" doc:"Webhook deliveries"`
	Suppressions int `json:"suppressions" doc:"Suppressions, with their evidence"`
}

// PersonalData is what Postroom has of a person, by place.
type PersonalData struct {
	Email        string               `json:"email"`
	Account      string               `json:"account,omitempty" doc:"Account. Absent for all accounts"`
	Created      time.Time            `json:"created"`
	Subscribers  []PersonalSubscriber `json:"subscribers"`
	Campaigns    []PersonalCampaign   `json:"campaigns"`
	Digests      []PersonalDigest     `json:"digests" doc:"Digest recipients with the address, their pending events and runs"`
	Messages     []LoggedMessage      `json:"messages" doc:"Messages to the person, live and in the email log, without other recipients"`
	Documents    []PersonalDocument   `json:"documents" doc:"Messages that only the search index has"`
	Deliveries   []PersonalDelivery   `json:"deliveries" doc:"Webhook deliveries that name the person"`
	Suppressions []Suppression        `json:"suppressions"`
	Remaining    []string             `json:"remaining" doc:"Other places that may have data about the person"`
}

// PersonalSubscriber is a subscriber with the proof of each subscription.
type PersonalSubscriber struct {
	Subscriber
	Consents []ConsentEntry `json:"consents"`
}

// PersonalCampaign is the result of a campaign's message to a person.
type PersonalCampaign struct {
	Campaign string `json:"campaign"`
	Name     string `json:"name"`
	CampaignRecipient
}

// PersonalDocument is a message in the search index.
type PersonalDocument struct {
	QueueID string    `json:"queueId"`
	Account string    `json:"account"`
	Subject string    `json:"subject"`
	From    string    `json:"from"`
	Status  string    `json:"status"`
	Created time.Time `json:"created"`
	Text    string    `json:"text,omitempty"`
}

// PersonalDelivery is a webhook delivery that names a person.
type PersonalDelivery struct {
	Endpoint string          `json:"endpoint"`
	ID       string          `json:"id"`
	Created  time.Time       `json:"created"`
	Event    json.RawMessage `json:"event"`
}
