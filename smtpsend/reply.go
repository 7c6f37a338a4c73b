package smtpsend

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/message"
)

// Bounds on what a relay may make us keep. RFC 5321 section 4.5.3.1.5 allows 512 bytes a line; EHLO answers
// of 30 lines exist.
const (
	maxReplyBytes = 64 << 10
	maxReplyLines = 100
	maxLineShown  = 1000
)

// reply is one complete answer of a relay.
type reply struct {
	code int
	text string // the lines without code and separator, joined by \n
}

func (r reply) positive() bool     { return r.code/100 == 2 }
func (r reply) intermediate() bool { return r.code/100 == 3 }

// errProtocol is the cause of every error about bytes that are not a reply. The conversation cannot go on
// after one.
var errProtocol = errors.New("not an SMTP reply")

// readReply reads one reply, however many lines it has (RFC 5321 section 4.2). It is strict where leniency
// would make us wait or misjudge (a code that changes between lines, a code outside 200 to 599) and lenient
// where meaning is clear (a bare code, LF alone, bytes that are not UTF-8).
func readReply(r *bufio.Reader) (reply, error) {
	var (
		out   reply
		more  strings.Builder
		total int
	)
	for lines := 1; ; lines++ {
		line, err := readLine(r, maxReplyBytes-total)
		if err != nil {
			return reply{}, err
		}
		total += len(line)
		code, last, text, err := parseReplyLine(line)
		switch {
		case err != nil:
			return reply{}, err
		case lines > maxReplyLines:
			return reply{}, fmt.Errorf("%w: more than %d lines", errProtocol, maxReplyLines)
		case lines > 1 && code != out.code:
			return reply{}, fmt.Errorf("%w: code %d continued as %d", errProtocol, out.code, code)
		case lines == 1 && last:
			return reply{code: code, text: text}, nil
		case lines == 1:
			out.code = code
		default:
			more.WriteByte('\n')
		}
		more.WriteString(text)
		if last {
			out.text = more.String()
			return out, nil
		}
	}
}

// readLine reads up to the next LF, at most max bytes, and cuts the line end off.
func readLine(r *bufio.Reader, max int) (string, error) {
	chunk, err := r.ReadSlice('\n')
	if err == nil && len(chunk) <= max {
		return strings.TrimRight(string(chunk), "\r\n"), nil
	}
	var b strings.Builder
	for {
		if b.Len()+len(chunk) > max {
			return "", fmt.Errorf("%w: longer than %d bytes", errProtocol, maxReplyBytes)
		}
		b.Write(chunk)
		switch {
		case err == nil:
			return strings.TrimRight(b.String(), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
		chunk, err = r.ReadSlice('\n')
	}
}

// parseReplyLine takes one line apart: three digits, then nothing, or a space or hyphen and text.
func parseReplyLine(line string) (code int, last bool, text string, err error) {
	if len(line) < 3 || !digit(line[0]) || !digit(line[1]) || !digit(line[2]) {
		return 0, false, "", fmt.Errorf("%w: %q", errProtocol, message.Clip(line, 80))
	}
	code = int(line[0]-'0')*100 + int(line[1]-'0')*10 + int(line[2]-'0')
	if code < 200 || code > 599 {
		return 0, false, "", fmt.Errorf("%w: code %d", errProtocol, code)
	}
	if len(line) == 3 {
		return code, true, "", nil
	}
	if line[3] != ' ' && line[3] != '-' {
		return 0, false, "", fmt.Errorf("%w: %q", errProtocol, message.Clip(line, 80))
	}
	return code, line[3] == ' ', line[4:], nil
}

// enhanced splits the reply into its enhanced status code (RFC 2034, also in the forms "#5.1.1" and "5.7.1:")
// and the words, lines joined by a space. A code whose class contradicts the reply's is not believed: the
// reply code wins.
func (r reply) enhanced() (code, words string) {
	lines := strings.Split(r.text, "\n")
	for i, line := range lines {
		c, rest := splitEnhanced(line, r.code/100)
		if c == "" {
			continue
		}
		if code == "" {
			code = c
		}
		if c == code {
			lines[i] = rest
		}
	}
	return code, printableText(strings.Join(lines, " "))
}

// splitEnhanced takes an enhanced status code of the given class off the front of a line. It returns no code
// when there is none.
func splitEnhanced(line string, class int) (code, rest string) {
	s := strings.TrimLeft(line, " (#")
	end := 0
	for end < len(s) && (digit(s[end]) || s[end] == '.') {
		end++
	}
	parts := strings.Split(s[:end], ".")
	if len(parts) != 3 || len(parts[0]) != 1 || int(parts[0][0]-'0') != class {
		return "", line
	}
	for _, p := range parts[1:] {
		if len(p) < 1 || len(p) > 3 {
			return "", line
		}
	}
	if end < len(s) && !strings.ContainsRune(" \t:;,)-", rune(s[end])) {
		return "", line
	}
	return s[:end], strings.TrimLeft(s[end:], " \t:;,)-")
}

// line is the reply as one printable line with its code.
func (r reply) line() string {
	text := printableText(strings.ReplaceAll(r.text, "\n", " "))
	if text == "" {
		return fmt.Sprint(r.code)
	}
	return message.Clip(fmt.Sprintf("%d %s", r.code, text), maxLineShown)
}

// printableText makes a relay's words safe to log and to show: UTF-8, or else read as Latin-1, without
// control characters.
func printableText(s string) string {
	if !utf8.ValidString(s) {
		runes := make([]rune, len(s))
		for i := range len(s) {
			runes[i] = rune(s[i])
		}
		s = string(runes)
	}
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, s))
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
