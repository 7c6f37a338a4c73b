package api_test

import (
	"testing"

	"github.com/postroom/postroom/api"
)

func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		`=HYPERLINK("https://evil.example")`: `'=HYPERLINK("https://evil.example")`,
		"+1":                                 "'+1",
		"-x@example.com":                     "'-x@example.com",
		"@SUM(1)":                            "'@SUM(1)",
		"\t=1":                               "'\t=1",
		"\r=1":                               "'\r=1",
		"'=1":                                "''=1",
		"''+x@example.com":                   "'''+x@example.com",
		"'ann'@example.com":                  "'ann'@example.com",
		"ann+news@example.com":               "ann+news@example.com",
		"'":                                  "'",
		"":                                   "",
	} {
		got := api.CSVCell(cell)
		if got != want {
			t.Errorf("%q is written as %q, want %q", cell, got, want)
		}
		if back := api.CSVText(got); back != cell {
			t.Errorf("%q is read back as %q", cell, back)
		}
	}
	if row := api.CSVRow("a", "=b"); row[0] != "a" || row[1] != "'=b" {
		t.Errorf("a row is written as %q", row)
	}
}
