package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"
)

// console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
	inTTY    bool
	outTTY   bool
	errTTY   bool
	size     func() (width, height int) // of the terminal at out; asked anew each time, since windows are resized
}

// newConsole looks which of the files are terminals.
func newConsole(in, out, err *os.File) *console {
	c := &console{in: in, out: out, err: err}
	c.inTTY, c.outTTY, c.errTTY = term.IsTerminal(int(in.Fd())), term.IsTerminal(int(out.Fd())), term.IsTerminal(int(err.Fd()))
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
func (c *console) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// confirm asks a person. Without one at the keyboard the answer is no.
func (c *console) confirm(format string, args ...any) bool {
	if !c.inTTY || !c.errTTY {
		return false
	}
	fmt.Fprintf(c.err, format+" [y/N] ", args...)
	line, _ := bufio.NewReader(c.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// clean makes text that strangers wrote fit for a terminal: one line, and nothing that moves the cursor or colours what follows.
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

// printJSONLine prints one of many answers for programs, each on a line of its own.
func (c *console) printJSONLine(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
