package sendlog

import "fmt"

// Run names a run: one sending of a campaign.
type Run struct {
	Campaign uint32 // number of the campaign
	Number   int    // from 1
}

// String returns the run as it is in keys: "5.1".
func (r Run) String() string { return fmt.Sprintf("%d.%d", r.Campaign, r.Number) }

// ChunkSize is the number of people of a chunk.
const ChunkSize = 64_000

// Chunks returns how many chunks hold the people below an ordinal.
func Chunks(end uint32) int { return int((uint64(end) + ChunkSize - 1) / ChunkSize) }

// ChunkOf returns the chunk of an ordinal, and the offset in it.
func ChunkOf(ordinal uint32) (chunk, offset int) {
	return int(ordinal / ChunkSize), int(ordinal % ChunkSize)
}

// State is a person's result in a run.
type State int

// The states. Their values are in Redis.
const (
	Waiting      State = 0
	Taken        State = 1 // by a batch
	AtDot        State = 2 // the final dot is being written, or the reply awaited
	Sent         State = 3
	Deferred     State = 4 // tried, and a message of the outbox now
	Suppressed   State = 5
	Unsubscribed State = 6 // left after the run began
	Bounced      State = 7 // the address was refused permanently, or its mail came back
	Failed       State = 8
	InDoubt      State = 10
	Cancelled    State = 11
)

// before has the states that each may follow.
var before = map[State][]State{
	Sent:         {AtDot, InDoubt, Deferred},
	Deferred:     {Taken, AtDot},
	Suppressed:   {Taken, Deferred},
	Unsubscribed: {Taken, Deferred},
	Bounced:      {Taken, AtDot, Deferred, InDoubt, Sent},
	Failed:       {Taken, AtDot, Deferred},
	InDoubt:      {AtDot},
	Cancelled:    {Deferred},
	Taken:        {AtDot}, // nothing was delivered after all
}

// Group is a part of the people of a run that is counted apart: 0 to 15. A person keeps it in a run.
type Group int

// Bit is a fact about people in addition to their state.
type Bit string

// The bits.
const (
	Delivered   Bit = "delivered"
	Opened      Bit = "opened"
	OpenedBots  Bit = "opened-bots" // by a program
	Clicked     Bit = "clicked"
	ClickedBots Bit = "clicked-bots"
	Complained  Bit = "complained"
	Left        Bit = "left"
)

var bits = []Bit{Delivered, Opened, OpenedBots, Clicked, ClickedBots, Complained, Left}
