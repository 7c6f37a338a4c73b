package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// grid is rows under headings. Cells may hold anything; add cleans them.
type grid struct {
	headings []string
	rows     [][]string
}

func (g *grid) add(cells ...string) {
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	g.rows = append(g.rows, cells)
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

// draw makes a table no wider than the terminal; what does not fit is cut.
func (g grid) draw(width int) string {
	t := table.New().Border(lipgloss.RoundedBorder()).BorderStyle(frameStyle).Wrap(false).Headers(g.headings...).Rows(g.rows...).
		StyleFunc(func(row, _ int) lipgloss.Style {
			if row == table.HeaderRow {
				return headingStyle
			}
			return cellStyle
		})
	if text := t.String(); lipgloss.Width(text) <= width {
		return text
	}
	return t.Width(width).String()
}

// moment is a time as people take it in: near ones by their distance, others by date.
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

// orDash stands in for what is not there.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
