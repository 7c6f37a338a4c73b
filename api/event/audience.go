package event

// SubscriptionChange is the data of SubscriberConfirmed and SubscriberLeft.
type SubscriptionChange struct {
	Subscriber string `json:"subscriber"` // id
	Email      string `json:"email"`
	ListID     string `json:"listId"`
	// the source of the confirmed subscription, or of the unsubscribe
	Reason string `json:"reason"`
}
