package event

import "time"

// Trouble is the data of AccountError: why an account's mail is not delivered until somebody acts. One
// trouble makes one event. The next event follows after mail was delivered or the account was edited, or for
// another ErrorCode.
type Trouble struct {
	Failure
	Gateway string `json:"gateway,omitempty"` // where it was met; empty: the account's own relay, or unknown
	// the account's mail waits until the trouble is gone; false: it fails
	Held  bool      `json:"held"`
	Since time.Time `json:"since"`
}
