package api

import (
	"bufio"
	"io"
	"regexp"
	"strings"
)

// formulas matches text that a spreadsheet would run as a formula. It starts with =, +, - or @
// or their fullwidth forms, with |, a tab or a carriage return, after any number of apostrophes. A
// spreadsheet that uses the semicolon as separator splits a cell there, even within quotes.
var formulas = regexp.MustCompile("(^|[;\n])('*[=+@|\t\r＝＋－＠-])")

// marked matches the same with the apostrophe of CSVCell.
var marked = regexp.MustCompile("(^|[;\n])'('*[=+@|\t\r＝＋－＠-])")

// CSVCell returns a cell for an export. Addresses and relay replies may look like formulas. An
// apostrophe precedes each, as OWASP advises.
func CSVCell(cell string) string { return formulas.ReplaceAllString(cell, "$1'$2") }

// CSVText is the reverse of CSVCell. It returns any other cell unchanged.
func CSVText(cell string) string { return marked.ReplaceAllString(cell, "$1$2") }

// CSVWriter writes an export. It quotes cells that another program could split.
type CSVWriter struct{ w *bufio.Writer }

// NewCSVWriter returns a writer of lines to w. Call Flush at the end.
func NewCSVWriter(w io.Writer) *CSVWriter { return &CSVWriter{bufio.NewWriterSize(w, 64<<10)} }

// Write writes a line. Flush returns the same error.
func (c *CSVWriter) Write(cells []string) error {
	for i, cell := range cells {
		if cell = CSVCell(cell); strings.ContainsAny(cell, ",;\"\t\r\n") || strings.TrimSpace(cell) != cell {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		if i > 0 {
			cell = "," + cell
		}
		_, _ = c.w.WriteString(cell) // the writer keeps its error
	}
	return c.w.WriteByte('\n')
}

// Flush writes what is left, and returns the first error.
func (c *CSVWriter) Flush() error { return c.w.Flush() }
