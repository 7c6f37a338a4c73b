package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"
)

// grid is rows under headings, if there are any. Rows have the same number of cells. add makes them
// safe for a terminal.
type grid struct {
	headings []string
	rows     [][]string
}

func newGrid(headings ...string) grid { return grid{headings: headings} }

// add appends a row.
func (g *grid) add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = clean(fmt.Sprint(cell))
	}
	g.rows = append(g.rows, row)
}

// fact appends a row of a name and its value, if there is one.
func (g *grid) fact(name, value string) {
	if value != "" {
		g.add(name, value)
	}
}

// show prints a grid: drawn on a terminal, in plain columns elsewhere.
func (c *console) show(g grid) {
	if !c.outTTY {
		c.showPlain(g)
		return
	}
	width, _ := c.size()
	_, _ = lipgloss.Fprintln(c.out, g.draw(width))
}

func (c *console) showPlain(g grid) {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	if len(g.headings) > 0 {
		fmt.Fprintln(w, strings.ToUpper(strings.Join(g.headings, "\t")))
	}
	for _, row := range g.rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
}

var (
	boldStyle    = lipgloss.NewStyle().Bold(true)
	headingStyle = lipgloss.NewStyle().Bold(true).Padding(0, 1)
	cellStyle    = lipgloss.NewStyle().Padding(0, 1)
	frameStyle   = lipgloss.NewStyle().Foreground(lipgloss.BrightBlack)
)

// draw returns a table no wider than the terminal.
func (g grid) draw(width int) string {
	return table.New().Border(lipgloss.RoundedBorder()).BorderStyle(frameStyle).Wrap(false).
		Headers(g.headings...).Rows(g.fit(width)...).StyleFunc(func(row, _ int) lipgloss.Style {
		if row == table.HeaderRow {
			return headingStyle
		}
		return cellStyle
	}).String()
}

// least is the smallest width of a column.
const least = 6

// fit returns the rows with the widest columns cut until the table fits. The first column is never cut: it is
// the id for the next command.
func (g grid) fit(width int) [][]string {
	headings := g.headings
	if len(headings) == 0 && len(g.rows) > 0 {
		headings = make([]string, len(g.rows[0]))
	}
	widths := make([]int, len(headings))
	total := 1
	for i, heading := range headings {
		widths[i] = lipgloss.Width(heading)
		for _, row := range g.rows {
			widths[i] = max(widths[i], lipgloss.Width(row[i]))
		}
		total += widths[i] + 3 // a space at both sides, and the line
	}
	for ; total > width; total-- {
		widest := -1
		for i := 1; i < len(widths); i++ {
			if widths[i] > max(least, lipgloss.Width(headings[i])) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // the terminal has to wrap
		}
		widths[widest]--
	}
	rows := make([][]string, len(g.rows))
	for r, row := range g.rows {
		rows[r] = make([]string, len(row))
		for i, cell := range row {
			rows[r][i] = ansi.Truncate(cell, widths[i], "…")
		}
	}
	return rows
}

// moment returns a time within two days as a distance, any other as a date.
func moment(t, now time.Time) string {
	switch d := t.Sub(now).Round(time.Second); {
	case t.IsZero():
		return ""
	case d > -time.Second && d < time.Second:
		return "now"
	case d > 0 && d < 48*time.Hour:
		return "in " + span(d)
	case d < 0 && d > -48*time.Hour:
		return span(-d) + " ago"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// span is a duration in its one or two largest units.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0 && m > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case h > 0:
		return fmt.Sprintf("%dh", h)
	case m > 0 && s > 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	case m > 0:
		return fmt.Sprintf("%dm", m)
	}
	return fmt.Sprintf("%ds", s)
}

// orDash returns s, or a dash.
func orDash(s string) string { return cmp.Or(s, "-") }

// orNever is a time, or never.
func orNever(t *time.Time, now time.Time) string {
	if t == nil {
		return "never"
	}
	return moment(*t, now)
}

// words joins texts.
func words[T ~string](list []T, between string) string {
	out := make([]string, len(list))
	for i, word := range list {
		out[i] = string(word)
	}
	return strings.Join(out, between)
}

// clip cuts a text to n characters.
func clip(s string, n int) string {
	r := []rune(clean(s))
	if len(r) <= n {
		return string(r)
	}
	return strings.TrimRight(string(r[:n-1]), " ") + "…"
}

// seconds formats an age in seconds.
func seconds(age float64) string { return span(time.Duration(age * float64(time.Second))) }
