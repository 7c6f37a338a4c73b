package api

import "strings"

// CSVCell returns a cell as an export has it. A spreadsheet takes a cell that begins with =, +, -, @, a
// tab or a carriage return for a formula, and runs it. Addresses and replies of relays may begin so. An
// apostrophe precedes such a cell, as OWASP advises.
func CSVCell(cell string) string {
	if formula(cell) {
		return "'" + cell
	}
	return cell
}

// CSVRow is CSVCell for the cells of a line. It changes the slice that it is given.
func CSVRow(cells ...string) []string {
	for i, cell := range cells {
		cells[i] = CSVCell(cell)
	}
	return cells
}

// CSVText is the reverse of CSVCell. Any other cell it returns as it is.
func CSVText(cell string) string {
	if strings.HasPrefix(cell, "'") && formula(cell) {
		return cell[1:]
	}
	return cell
}

// formula reports whether a cell begins as a formula, after any number of apostrophes: a text that begins so
// itself gets one more.
func formula(cell string) bool {
	cell = strings.TrimLeft(cell, "'")
	return cell != "" && strings.IndexByte("=+-@\t\r", cell[0]) >= 0
}
