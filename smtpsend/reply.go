package smtpsend

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/postroom/postroom/internal/message"
)

// Bounds of a relay's reply. RFC 5321 section 4.5.3.1.5 allows 512 bytes a line. EHLO answers of 30 lines
// exist.
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

// errProtocol is the cause of every error about bytes that are not a reply. It ends the conversation.
var errProtocol = errors.New("not an SMTP reply")

// greetingError means that a relay greets with another code than 220 (RFC 5321 section 4.3.2), as servers of
// other protocols do.
type greetingError struct {
	code int
	text string // what else was said
}

func (g greetingError) Error() string {
	return fmt.Sprintf("the relay greets with %d, not with 220: %s", g.code, g.text)
}

// Is makes it an error of the protocol.
func (g greetingError) Is(target error) bool { return target == errProtocol }

// readReply reads one reply of one or more lines (RFC 5321 section 4.2). It is strict where leniency would
// cause waits or wrong verdicts (a code that changes between lines, a code outside 200 to 599). It is lenient
// where the meaning is clear (a bare code, LF alone, bytes that are not UTF-8).
func readReply(r *bufio.Reader) (reply, error) {
	var out reply
	for lines, total := 1, 0; ; lines++ {
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
		case lines == 1:
			out = reply{code: code, text: text}
		case code != out.code:
			return reply{}, fmt.Errorf("%w: code %d continued as %d", errProtocol, out.code, code)
		default:
			out.text += "\n" + text
		}
		if last {
			return out, nil
		}
	}
}

// readLine reads up to the next LF, at most max bytes, and cuts the line end off.
func readLine(r *bufio.Reader, max int) (string, error) {
	for line := ""; ; {
		chunk, err := r.ReadSlice('\n')
		if len(line)+len(chunk) > max {
			return "", fmt.Errorf("%w: longer than %d bytes", errProtocol, maxReplyBytes)
		}
		line += string(chunk)
		switch {
		case err == nil:
			return strings.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}

// parseReplyLine parses one line: three digits, then nothing, or a space or hyphen and text.
func parseReplyLine(line string) (code int, last bool, text string, err error) {
	if len(line) < 3 || strings.Trim(line[:3], "0123456789") != "" ||
		len(line) > 3 && line[3] != ' ' && line[3] != '-' {
		return 0, false, "", fmt.Errorf("%w: %q", errProtocol, message.Clip(line, 80))
	}
	if code, _ = strconv.Atoi(line[:3]); code < 200 || code > 599 {
		return 0, false, "", fmt.Errorf("%w: code %d", errProtocol, code)
	}
	if len(line) == 3 {
		return code, true, "", nil
	}
	return code, line[3] == ' ', line[4:], nil
}

// enhanced returns the reply's enhanced status code (RFC 2034, and the forms "#5.1.1" and "5.7.1:") and its
// text, with lines joined by a space. A code whose class is not the reply code's is ignored.
func (r reply) enhanced() (code, words string) {
	lines := strings.Split(r.text, "\n")
	for i, line := range lines {
		c, rest := splitEnhanced(line, r.code/100)
		if c == "" {
			continue
		}
		code = cmp.Or(code, c)
		if c == code {
			lines[i] = rest
		}
	}
	return code, printableText(strings.Join(lines, " "))
}

var enhancedPattern = regexp.MustCompile(`(?s)^[ (#]*(\d\.\d{1,3}\.\d{1,3})(?:[ \t:;,)-]+(.*))?$`)

// splitEnhanced cuts an enhanced status code of the given class off the front of a line. Without one it
// returns no code and the whole line.
func splitEnhanced(line string, class int) (code, rest string) {
	m := enhancedPattern.FindStringSubmatch(line)
	if m == nil || int(m[1][0]-'0') != class {
		return "", line
	}
	return m[1], m[2]
}

// line returns the reply as one printable line with its code.
func (r reply) line() string {
	text := printableText(strings.ReplaceAll(r.text, "\n", " "))
	if text == "" {
		return fmt.Sprint(r.code)
	}
	return message.Clip(fmt.Sprintf("%d %s", r.code, text), maxLineShown)
}

// printableText returns a relay's text without control characters, for logs and pages. Text that isn't UTF-8
// is read as Windows-1252.
func printableText(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, message.ValidText(s)))
}
