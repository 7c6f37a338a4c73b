package smtpsend

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/message"
)

// The sides of a DialogueLine.
const (
	FromClient = "client" // Postroom
	FromServer = "server" // the relay
	FromNote   = "note"   // neither: what happened on the connection
)

// DialogueLine is one line of the SMTP dialogue of an attempt.
type DialogueLine struct {
	At   time.Duration // since Send began
	From string        // FromClient, FromServer or FromNote
	Text string        // printable UTF-8 without line ends, at most about 230 bytes
}

// Bounds of a dialogue's excerpt. The note about omitted lines adds one line.
const (
	dialogueFirst = 9       // first lines kept
	dialogueLast  = 10      // last lines kept
	dialogueBytes = 2 << 10 // for all lines
	dialogueHead  = 700     // for the first lines, if the bytes do not suffice for all
	dialogueLine  = 200     // bytes of a line before it is cut
)

// recorder keeps the first and the last lines of a dialogue. While nothing fails it keeps only references to
// strings that exist anyway, and no text is made. It never gets the content of the message, credentials, or
// the answers to challenges. A nil recorder records nothing.
type recorder struct {
	begun  time.Time
	n      int // lines so far
	first  [dialogueFirst]recorded
	last   [dialogueLast]recorded // a ring
	server int                    // connections so far
	veiled bool                   // the server has not shown to be an SMTP server (notsmtp.go)
}

// recorded is one line before it is written as text.
type recorded struct {
	kind   lineKind
	at     time.Duration
	words  [4]string
	number int64    // reply code, port, octets or transactions, by kind
	addr   net.Addr // the other end of a connection
	failed *Error   // why a connection ended
	after  time.Duration
	veil   int // number of the connection whose server has not; 0 if it has
}

type lineKind byte

const (
	lineSaid    lineKind = iota // a command: words
	lineHeard                   // a reply: number is its code, words[0] its text
	lineContent                 // the content of the message: number are its octets
	lineNote                    // words
	lineDial                    // words[0] is the host, number the port, words[1] the scheme of a proxy
	lineOpen                    // a new connection to addr
	lineReused                  // a connection to addr that has begun number transactions before
	lineFailed                  // failed
)

// begin starts a recording.
func (r *recorder) begin() { r.begun = time.Now() }

// reset prepares the recorder for another message, and releases the strings of this one.
func (r *recorder) reset() {
	clear(r.first[:min(r.n, dialogueFirst)])
	clear(r.last[:min(max(0, r.n-dialogueFirst), dialogueLast)])
	r.n, r.server, r.veiled = 0, 0, false
}

// add returns the place of the next line.
func (r *recorder) add(kind lineKind) *recorded {
	e := &r.last[max(0, r.n-dialogueFirst)%dialogueLast]
	if r.n < dialogueFirst {
		e = &r.first[r.n]
	}
	r.n++
	*e = recorded{kind: kind, at: time.Since(r.begun)}
	return e
}

// said records a command. Its caller must not pass secrets.
func (r *recorder) said(parts ...string) {
	if r != nil {
		copy(r.add(lineSaid).words[:], parts)
	}
}

func (r *recorder) heard(answer reply) {
	if r == nil {
		return
	}
	e := r.add(lineHeard)
	e.number, e.words[0] = int64(answer.code), answer.text
	if r.veiled {
		e.veil = r.server
	}
}

// note records what happened on the connection.
func (r *recorder) note(parts ...string) {
	if r != nil {
		copy(r.add(lineNote).words[:], parts)
	}
}

// content records that the content is written, without its text.
func (r *recorder) content(octets int64) {
	if r != nil {
		r.add(lineContent).number = octets
	}
}

// dials records that a relay is dialed, perhaps through a proxy. The server's lines are veiled until unveil.
func (r *recorder) dials(relay Relay, p *proxy) {
	if r == nil {
		return
	}
	r.server++
	r.veiled = !relay.OperatorsOwn
	e := r.add(lineDial)
	e.words[0], e.number = relay.Host, int64(relay.Port)
	if p != nil {
		e.words[1] = p.scheme
	}
}

// opened records that the other end of a TCP connection answered.
func (r *recorder) opened(c *session) {
	if r == nil {
		return
	}
	e := r.add(lineOpen)
	if c.proxy == nil && (c.relay.OperatorsOwn || isPublic(c.raw.RemoteAddr())) {
		e.addr = c.raw.RemoteAddr()
	}
}

// reused records that a connection was used before.
func (r *recorder) reused(c *session) {
	if r == nil {
		return
	}
	e := r.add(lineReused)
	e.number, e.words[0], e.words[1] = int64(c.served), c.relay.Host, c.tls
	if c.proxy == nil && (c.relay.OperatorsOwn || isPublic(c.raw.RemoteAddr())) {
		e.addr = c.raw.RemoteAddr()
	}
}

// ended records a failure without a reply: why the connection ended, or why nothing more was said. A reply is
// already recorded.
func (r *recorder) ended(failure *Error) {
	if r == nil || r.n == 0 || failure.Code != 0 {
		return
	}
	before := r.entry(r.n - 1).at
	e := r.add(lineFailed)
	e.failed, e.after = failure, e.at-before
}

// unveil notes that the server of the connection has proven to be an SMTP server, so that its text may be
// shown.
func (r *recorder) unveil() {
	if r == nil || !r.veiled {
		return
	}
	r.veiled = false
	for _, lines := range [][]recorded{r.first[:], r.last[:]} {
		for i := range lines {
			if lines[i].veil == r.server {
				lines[i].veil = 0
			}
		}
	}
}

// entry returns line i, which must be one of the kept lines.
func (r *recorder) entry(i int) *recorded {
	if i < dialogueFirst {
		return &r.first[i]
	}
	return &r.last[(i-dialogueFirst)%dialogueLast]
}

// excerpt returns the dialogue with a relay, at most about 20 lines and 2 kB. It marks what it left out.
func (r *recorder) excerpt(relay *Relay) []DialogueLine {
	missing := max(0, r.n-dialogueFirst-dialogueLast)
	gap := min(r.n, dialogueFirst)
	all, total := make([]DialogueLine, 0, r.n-missing), 0
	credentials := relay.secrets()
	for i := range r.n - missing {
		e := r.entry(i)
		if i >= gap {
			e = r.entry(i + missing)
		}
		line := DialogueLine{At: e.at, From: e.from(), Text: cutLine(printableText(e.text(credentials)))}
		all, total = append(all, line), total+len(line.Text)
	}
	if total <= dialogueBytes && missing == 0 {
		return all
	}
	from, used := 0, 0
	for from < gap && used+len(all[from].Text) <= dialogueHead {
		used += len(all[from].Text)
		from++
	}
	least := from
	if missing > 0 {
		least = gap
	}
	to := len(all)
	for to > least && used+len(all[to-1].Text) <= dialogueBytes {
		to--
		used += len(all[to].Text)
	}
	out := append(make([]DialogueLine, 0, len(all)+1), all[:from]...)
	if n := to - from + missing; n > 0 {
		word := "lines are"
		if n == 1 {
			word = "line is"
		}
		out = append(out, DialogueLine{At: out[from-1].At, From: FromNote,
			Text: fmt.Sprintf("… %d %s left out …", n, word)})
	}
	return append(out, all[to:]...)
}

func (e *recorded) from() string {
	switch e.kind {
	case lineSaid, lineContent:
		return FromClient
	case lineHeard:
		return FromServer
	}
	return FromNote
}

// text writes a line, without the credentials.
func (e *recorded) text(credentials []string) string {
	switch e.kind {
	case lineHeard:
		text := strconv.FormatInt(e.number, 10)
		if e.veil != 0 {
			return text + " (not shown: nothing shows that this is an SMTP server)"
		}
		return text + " " + message.Mask(strings.ReplaceAll(e.words[0], "\n", " / "), credentials)
	case lineContent:
		return "(message, " + thousands(e.number) + " bytes)"
	case lineDial:
		text := "connecting to " + net.JoinHostPort(e.words[0], strconv.FormatInt(e.number, 10))
		if e.words[1] != "" {
			text += " through a proxy (" + e.words[1] + ")"
		}
		return text
	case lineOpen:
		if e.addr == nil {
			return "connected"
		}
		return "connected to " + e.addr.String()
	case lineReused:
		text := "a connection that was used before"
		if e.addr != nil {
			text += ", to " + e.addr.String()
		} else {
			text += ", to " + e.words[0]
		}
		if e.words[1] != "" {
			text += ", " + e.words[1]
		}
		return text + fmt.Sprintf(", transactions before this one: %d", e.number)
	case lineFailed:
		text := "failed"
		if e.failed.Err != nil {
			text = e.failed.Err.Error()
		}
		if e.failed.Timeout() {
			text = fmt.Sprintf("timeout after %.1f s: %s", e.after.Seconds(), text)
		}
		return message.Mask(text, credentials)
	}
	return strings.Join(e.words[:], "")
}

// secrets returns the credentials, in the forms in which they are sent.
func (r *Relay) secrets() (all []string) {
	encoded := func(secret string) {
		text := base64Of(secret)
		all = append(all, text, strings.TrimRight(text, "=")) // a relay may repeat it without its end
	}
	if r.hasCredentials() {
		for _, mech := range []string{mechPlain, mechXOAuth2, mechOAuthBearer} {
			if _, first, err := r.client(mech).Start(); err == nil {
				encoded(string(first))
			}
		}
		encoded(r.Username) // an answer to LOGIN; the name itself isn't secret
	}
	secrets := []string{r.Password, r.AccessToken}
	if p, err := parseProxy(r.Proxy); err == nil && p != nil {
		secrets = append(secrets, p.password)
	}
	for _, secret := range secrets {
		encoded(secret)
	}
	return append(all, secrets...)
}

// cutLine cuts a line that is too long. It does not cut an address in two: a part of one would not be found
// when the person is erased.
func cutLine(line string) string {
	if len(line) <= dialogueLine {
		return line
	}
	at := dialogueLine
	for at > 0 && !utf8.RuneStart(line[at]) {
		at--
	}
	const between = " <>,;:\"'()[]"
	begin := strings.LastIndexAny(line[:at], between) + 1
	end := len(line)
	if n := strings.IndexAny(line[at:], between); n >= 0 {
		end = at + n
	}
	const longestAddress = 64 + 1 + 255
	if word := line[begin:end]; len(word) <= longestAddress && strings.Contains(word, "@") {
		at = begin
	}
	return line[:at] + "… (" + thousands(int64(len(line))) + " bytes)"
}

// thousands writes a number with commas.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// isPublic reports whether an address is of the public network. Others aren't shown: an account would learn
// them from the names that it gives its relay.
func isPublic(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip, ok := netip.AddrFromSlice(tcp.IP)
	ip = ip.Unmap()
	return ok && ip.IsGlobalUnicast() && !ip.IsPrivate()
}
