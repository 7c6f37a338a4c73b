package event

// Digest is the data of an event about a run of digests.
type Digest struct {
	Run       string `json:"run"`
	Recipient string `json:"recipient"` // the application's id of the reader
	Schedule  string `json:"schedule"`
	Period    string `json:"period"`
	QueueID   string `json:"queueId,omitempty"`  // ID of its message
	Events    int    `json:"events"`             // in it
	Groups    int    `json:"groups,omitempty"`   // lines of its mail
	Returned  int    `json:"returned,omitempty"` // for a failed run: events that wait for the next run
	Reason    string `json:"reason,omitempty"`   // why it was skipped or failed
}
