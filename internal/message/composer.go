package message

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Composer composes messages that have most of their lines in common, such as the mail of a campaign. It
// keeps these lines in their transfer encoding, so only the others are encoded for each message. The function
// Compose makes the same messages, octet for octet. The zero value works. It is safe for concurrent use.
type Composer struct{ text, html shared }

// Limits of what a Composer keeps.
const (
	mostShared  = 256 << 10 // octets of a text
	longestRun  = 1 << 10   // octets of lines that are found together, or not at all
	mostLearned = 16        // times that it looks for other lines
	lookahead   = 3         // runs of lines that a message may lack
)

// shared are the lines that texts have in common.
type shared struct {
	runs    atomic.Pointer[[]*lines] // in order
	learned atomic.Int32

	mu   sync.Mutex
	last string // the last text that had few of these lines
}

// lines are whole lines of a text. They are encoded alike wherever they stand, because no encoding of text
// but base64 looks beyond a line end.
type lines struct {
	source  string // as the draft has them
	body    []byte // in UTF-8, with CRLF
	quoted  []byte // in quoted-printable; nil if not encoded yet
	plain   bool   // they need no encoding
	escapes int    // octets that quoted-printable escapes
}

func linesOf(source string) *lines {
	text := source
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	body := crlfOf(text)
	plain, escapes := survey(body)
	return &lines{source: source, body: body, plain: plain, escapes: escapes}
}

func (s *shared) part(kind, text string) *part {
	p := &part{kind: kind, parameters: []parameter{{name: "charset", value: "utf-8"}}, lines: s.cut(text)}
	plain, escapes, size := true, 0, 0
	for _, l := range p.lines {
		plain, escapes, size = plain && l.plain, escapes+l.escapes, size+len(l.body)
	}
	if p.encoding = encodingOf(plain, escapes, size); p.encoding == base64Encoding {
		p.body = make([]byte, 0, size)
		for _, l := range p.lines {
			p.body = append(p.body, l.body...)
		}
		p.lines = nil
	}
	return p
}

// cut returns the lines of a text; shared lines are returned as they are kept.
func (s *shared) cut(text string) []*lines {
	var runs []*lines
	if known := s.runs.Load(); known != nil {
		runs = *known
	}
	all := make([]*lines, 0, 2*len(runs)+1)
	own, found := 0, 0 // where unshared lines begin; octets of shared ones
	for at := 0; at < len(text); {
		n := slices.IndexFunc(runs[:min(lookahead, len(runs))], func(l *lines) bool {
			return strings.HasPrefix(text[at:], l.source)
		})
		if n < 0 {
			at += lineLength(text[at:])
			continue
		}
		if own < at {
			all = append(all, linesOf(text[own:at]))
		}
		all = append(all, runs[n])
		at += len(runs[n].source)
		own, found, runs = at, found+len(runs[n].source), runs[n+1:]
	}
	if own < len(text) {
		all = append(all, linesOf(text[own:]))
	}
	if found < len(text)/4*3 && s.learned.Load() < mostLearned {
		s.learn(text)
	}
	return all
}

// learn keeps the lines that a text has in common with the last one, and forgets the lines kept before.
func (s *shared) learn(text string) {
	if len(text) > mostShared || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	last := s.last
	s.last = text
	s.learned.Add(1)
	if last == "" {
		return
	}
	known := map[string]bool{}
	for line := range strings.Lines(last) {
		known[line] = true
	}
	var runs []*lines
	begin, at := 0, 0
	keep := func() {
		if begin < at {
			l := linesOf(text[begin:at])
			l.quoted = appendQuotedPrintable(nil, l.body)
			runs = append(runs, l)
		}
		begin = at
	}
	for line := range strings.Lines(text) {
		same := known[line] && strings.HasSuffix(line, "\n")
		if !same || at+len(line)-begin > longestRun {
			keep()
		}
		at += len(line)
		if !same {
			begin = at
		}
	}
	keep()
	s.runs.Store(&runs)
}

func lineLength(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// appendBody appends the part's body in its transfer encoding.
func (p *part) appendBody(dst []byte) []byte {
	if p.lines == nil {
		return appendEncoded(dst, p.encoding, p.body)
	}
	for _, l := range p.lines {
		if p.encoding == quotedPrintable && l.quoted != nil {
			dst = append(dst, l.quoted...)
		} else {
			dst = appendEncoded(dst, p.encoding, l.body)
		}
	}
	return dst
}
