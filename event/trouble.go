package event

import "time"

// Trouble is the data of AccountError: why an account's mail does not get through for as long as nobody
// changes something. One trouble makes one event; the next event follows when mail got through, or the
// account was edited, in between, or when the trouble is of another kind (another ErrorCode).
type Trouble struct {
	Failure
	Gateway string `json:"gateway,omitempty"` // where it was met; empty: the account's own relay, or unknown
	// the account's mail waits until the trouble is gone; false: it fails
	Held  bool      `json:"held"`
	Since time.Time `json:"since"`
}
