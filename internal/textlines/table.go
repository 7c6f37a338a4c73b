package textlines

import (
	"fmt"
	"strings"
)

// Table returns the rows of a table of the program: one row a line, tabs between the columns. Lines that
// begin with # are comments. It panics if a row has another number of columns, which a test finds.
func Table(text string, columns int) [][]string {
	var rows [][]string
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != columns {
			panic(fmt.Sprintf("%d columns, want %d: %q", len(row), columns, line))
		}
		rows = append(rows, row)
	}
	return rows
}
