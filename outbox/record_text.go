package outbox

// How a text is kept of a message that ended: packed by itself, after a prefix, or in its content, which
// stays where it is. That costs nothing now, and little room where a mail is short.
const (
	keptText    = "t"
	keptContent = "c"
	shortMail   = 8 << 10
)
