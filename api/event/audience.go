package event

// SubscriptionChange is the data of SubscriberConfirmed and SubscriberLeft.
type SubscriptionChange struct {
	Subscriber string `json:"subscriber"` // id
	Email      string `json:"email"`
	ListID     string `json:"listId"`
	// how it came about: the source of the subscription that was confirmed, or that of the leaving
	Reason string `json:"reason"`
}
