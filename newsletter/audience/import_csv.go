package audience

import (
	"bytes"
	"errors"
	"io"

	"github.com/postroom/postroom/internal/textlines"
)

const (
	maxRecord  = 64 << 10 // bytes of a row whose cells have line breaks
	maxColumns = 1000
)

var (
	errQuote      = errors.New("has a quote that does not end")
	errLoneQuote  = errors.New("has a quote inside a cell: such a cell begins and ends with one, and a quote in it is doubled")
	errLongRecord = errors.New("has more than 65,536 bytes with its line breaks: does a quote not end?")
	errColumns    = errors.New("has more than 1,000 columns")
)

// csvRows reads the rows of a CSV file (RFC 4180). Cells in quotes may have line breaks.
type csvRows struct {
	lines *textlines.Reader
	comma byte
	line  int // where the last row begins, from 1
	buf   []byte
	ends  []int // where the cells in buf end
	cells []string
}

// next returns a row's cells, valid until the next call, or none for an empty line. It consumes a row that
// can't be read and returns it as one of the errors above or package textlines' errors. At the end it returns
// io.EOF. Other errors are the file's.
//
// A quote that does not end takes what follows it into its cell, up to maxRecord bytes. Then the row is
// faulty, and the next begins behind them.
func (c *csvRows) next() ([]string, error) {
	line, err := c.lines.Next()
	c.line = c.lines.Number
	if err != nil {
		return nil, err
	}
	c.buf, c.ends = c.buf[:0], c.ends[:0]
	if len(line) == 0 {
		return nil, nil
	}
	for {
		rest, more, err := c.cell(line)
		if err != nil {
			return nil, err
		}
		c.ends = append(c.ends, len(c.buf))
		if len(c.ends) > maxColumns {
			return nil, errColumns
		}
		if !more {
			return c.row(), nil
		}
		line = rest
	}
}

// cell reads one cell from a line. more: another one follows.
func (c *csvRows) cell(line []byte) (rest []byte, more bool, err error) {
	if len(line) > 0 && line[0] == '"' {
		return c.quoted(line[1:])
	}
	end := bytes.IndexByte(line, c.comma)
	if more = end >= 0; more {
		line, rest = line[:end], line[end+1:]
	}
	if bytes.IndexByte(line, '"') >= 0 {
		return nil, false, errLoneQuote
	}
	c.buf = append(c.buf, line...)
	return rest, more, nil
}

// quoted reads a cell from behind its first quote.
func (c *csvRows) quoted(line []byte) (rest []byte, more bool, err error) {
	for {
		end := bytes.IndexByte(line, '"')
		if end < 0 {
			c.buf = append(c.buf, line...)
			c.buf = append(c.buf, c.lines.End...)
			if len(c.buf) > maxRecord {
				return nil, false, errLongRecord
			}
			line, err = c.lines.Next()
			if err == io.EOF {
				err = errQuote
			}
			if err != nil {
				return nil, false, err
			}
			continue
		}
		c.buf = append(c.buf, line[:end]...)
		line = line[end+1:]
		switch {
		case len(line) == 0:
			return nil, false, nil
		case line[0] == '"':
			c.buf, line = append(c.buf, '"'), line[1:]
		case line[0] == c.comma:
			return line[1:], true, nil
		default:
			return nil, false, errLoneQuote
		}
	}
}

// row returns the cells. They share one string.
func (c *csvRows) row() []string {
	text, from := string(c.buf), 0
	c.cells = c.cells[:0]
	for _, end := range c.ends {
		c.cells = append(c.cells, text[from:end])
		from = end
	}
	return c.cells
}

// guessComma returns the delimiter of a heading line: the most frequent outside of quotes.
func guessComma(line []byte) byte {
	var counts [256]int
	inside := false
	for _, b := range line {
		if b == '"' {
			inside = !inside
		} else if !inside {
			counts[b]++
		}
	}
	best := byte(',')
	for _, b := range []byte(";\t|") {
		if counts[b] > counts[best] {
			best = b
		}
	}
	return best
}

// faultOfRow reports whether an error is about one row: the next can be read.
func faultOfRow(err error) bool {
	for _, of := range [...]error{textlines.ErrLong, textlines.ErrNUL, textlines.ErrCharset, errQuote,
		errLoneQuote, errLongRecord, errColumns} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}
