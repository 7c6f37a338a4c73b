package api_test

import (
	"encoding/csv"
	"strings"
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
		"＝1+1":                               "'＝1+1",
		"＋1":                                 "'＋1",
		"－1":                                 "'－1",
		"＠SUM(1)":                            "'＠SUM(1)",
		"|cmd":                               "'|cmd",
		"a;=1+1":                             "a;'=1+1",
		"a;'＝1;-2":                           "a;''＝1;'-2",
		"a\n=1":                              "a\n'=1",
		"a; b":                               "a; b",
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
	var file strings.Builder
	w := api.NewCSVWriter(&file)
	rows := [][]string{{"a", "=b", `say "x"`}, {"a;=1+1", " ", "c,d"}}
	for _, row := range rows {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	want := "a,'=b,\"say \"\"x\"\"\"\n\"a;'=1+1\",\" \",\"c,d\"\n"
	if err := w.Flush(); err != nil || file.String() != want {
		t.Errorf("rows are written as %q, %v", file.String(), err)
	}
	read, err := csv.NewReader(strings.NewReader(file.String())).ReadAll()
	for i := range rows {
		for j, cell := range rows[i] {
			if err != nil || api.CSVText(read[i][j]) != cell {
				t.Errorf("%q is read back as %q, %v", cell, read, err)
			}
		}
	}
}
