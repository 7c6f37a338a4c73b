package ui

import (
	"time"

	"github.com/postroom/postroom/outbox"
)

// searchFor is how long a page looks for messages where they must be read. The script lets the next page look
// on.
const searchFor = 75 * time.Millisecond

// stretch is the part of a list that a page shows, if it goes on at a cursor: new messages would shift the
// rows of pages with numbers, and a search would have to read all messages to count them.
type stretch struct {
	First   string // URL of the first rows
	Next    string // URL of the next rows; empty: none
	Further bool   // these are not the first rows
	Cursor  string // of the next rows; empty: none
	Short   bool   // the time for one page was over before it had all its rows
	Newest  bool   // the newest come first; else the oldest
}

// ReadTo is when the last message was accepted that this page looked at.
func (s stretch) ReadTo() time.Time { return outbox.ReadTo(s.Cursor) }

// Wanted is how many rows a page has if there are as many.
func (s stretch) Wanted() int { return rowsPerPage }

// NextPart is the URL of the next rows, for the script.
func (s stretch) NextPart() string { return s.Next + "&part=rows" }
