package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// console is the input and output of a command.
type console struct {
	in       io.Reader
	out, err io.Writer
	inTTY    bool
	outTTY   bool
	errTTY   bool
	// of the terminal at out; read each time, because windows are resized
	size func() (width, height int)
}

// newConsole returns a console and finds out which files are terminals.
func newConsole(in, out, err *os.File) *console {
	c := &console{in: in, out: out, err: err}
	tty := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	c.inTTY, c.outTTY, c.errTTY = tty(in), tty(out), tty(err)
	c.size = func() (int, int) {
		width, height, fault := term.GetSize(int(out.Fd()))
		if fault != nil || width < 20 || height < 5 {
			return 100, 30
		}
		return width, height
	}
	return c
}

// say prints a line of the result.
func (c *console) say(format string, args ...any) {
	_, _ = lipgloss.Fprintf(c.out, format+"\n", args...)
}

// note prints a line that is not part of the result.
func (c *console) note(format string, args ...any) {
	_, _ = lipgloss.Fprintf(c.err, format+"\n", args...)
}

// printJSON prints an answer for programs.
func (c *console) printJSON(v any) error { return c.encode(v, "  ") }

// encode prints JSON; without an indent on a line of its own.
func (c *console) encode(v any, indent string) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}

// confirm asks at a terminal. Elsewhere the answer is no.
func (c *console) confirm(format string, args ...any) bool {
	if !c.inTTY || !c.errTTY {
		return false
	}
	fmt.Fprintf(c.err, format+" [y/N] ", args...)
	line, _ := bufio.NewReader(c.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// clean makes untrusted text safe for a terminal: one line, without control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return '�'
		}
		return r
	}, strings.TrimSpace(s))
}

// barFrom is the smallest number of steps for which a bar is shown.
const barFrom = 50

// bar shows progress on a terminal; total -1: the length is not known. The errors of a bar are ignored,
// because they do no harm.
func (c *console) bar(total int, what string, options ...progressbar.Option) *progressbar.ProgressBar {
	seen, out := c.errTTY && (total < 0 || total >= barFrom), io.Discard
	if seen {
		out = c.err
	}
	return progressbar.NewOptions(total, append(options, progressbar.OptionSetWriter(out),
		progressbar.OptionSetVisibility(seen),
		progressbar.OptionSetDescription(what), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond))...)
}
