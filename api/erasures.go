package api

import (
	"encoding/json"
	"time"
)

// ErasureRequest names a person by their address.
type ErasureRequest struct {
	Email   string `json:"email" minLength:"3" maxLength:"254" doc:"Address of the person"`
	Account string `json:"account,omitempty" maxLength:"256" doc:"Only what this account has of the person. When absent: what all accounts have, or the account of the token"`
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
	Account   string        `json:"account,omitempty" doc:"Absent: all accounts"`
	Person    string        `json:"person" doc:"Keyed hash of the address: equal ones are of one person"`
	Place     string        `json:"place,omitempty" doc:"What is searched at the moment"`
	Places    ErasurePlaces `json:"places" doc:"What was found and erased in each place"`
	Remaining []string      `json:"remaining" doc:"Where Postroom did not, or can't, erase the person"`
	Created   time.Time     `json:"created"`
	Ended     *time.Time    `json:"ended,omitempty"`
	Trouble   string        `json:"trouble,omitempty" doc:"Why it could not go on the last time; it is tried again"`
}

// ErasurePlaces counts what was erased.
type ErasurePlaces struct {
	Subscribers  int `json:"subscribers" doc:"Records of the person in audiences"`
	Lists        int `json:"lists" doc:"Subscriptions"`
	Campaigns    int `json:"campaigns" doc:"Runs of campaigns that the person was in"`
	Outbox       int `json:"outbox" doc:"Live messages: cancelled, or going on without the person"`
	DeadLetters  int `json:"deadLetters"`
	Messages     int `json:"messages" doc:"Entries of the email log"`
	Events       int `json:"events" doc:"Past events that webhooks could replay"`
	Documents    int `json:"documents" doc:"Documents of the search index"`
	Digests      int `json:"digests" doc:"Readers of digests, with what waits for them and their runs"`
	Deliveries   int `json:"deliveries" doc:"Webhook deliveries"`
	Suppressions int `json:"suppressions" doc:"Suppressions, with their evidence"`
}

// PersonalData is what Postroom has of a person, by place.
type PersonalData struct {
	Email        string               `json:"email"`
	Account      string               `json:"account,omitempty" doc:"Absent: all accounts"`
	Created      time.Time            `json:"created"`
	Subscribers  []PersonalSubscriber `json:"subscribers"`
	Campaigns    []PersonalCampaign   `json:"campaigns"`
	Digests      []PersonalDigest     `json:"digests" doc:"Readers of digests with the address, what waits for them, and their runs"`
	Messages     []LoggedMessage      `json:"messages" doc:"Messages to the person, live and in the email log, without other recipients"`
	Documents    []PersonalDocument   `json:"documents" doc:"Messages that only the search index has"`
	Deliveries   []PersonalDelivery   `json:"deliveries" doc:"Webhook deliveries that name the person"`
	Suppressions []Suppression        `json:"suppressions"`
	Remaining    []string             `json:"remaining" doc:"Where else data about the person may be"`
}

// PersonalSubscriber is a subscriber with the proof of each subscription.
type PersonalSubscriber struct {
	Subscriber
	Consents []ConsentEntry `json:"consents"`
}

// PersonalCampaign is what became of the mail of a campaign to a person.
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
