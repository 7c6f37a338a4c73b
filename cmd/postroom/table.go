package main

import (
	"cmp"
	"fmt"
	"slices"
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

// layout is a way to draw a table.
type layout struct {
	column, whole int  // cells that a column takes beside its text, and a table beside its columns
	least         int  // smallest width to which a column is cut
	headings      bool // headings are not cut
}

var (
	framed = layout{column: 3, whole: 1, least: 6, headings: true} // a space at both sides, and the line
	plain  = layout{column: 2, least: 10}                          // a space at both sides
	tight  = layout{column: 2, least: 6}
)

// draw returns a table no wider than the terminal: framed if it fits so, else without lines between the
// columns, else without the columns that can be spared, and else with the cells of a row below each other.
func (g grid) draw(width int) string {
	if widths, ok := g.fit(width, framed); ok {
		return g.table(widths, true)
	}
	narrow, left := g, []string(nil)
	for _, column := range slices.Concat([]string{""}, spare, []string{""}) {
		if at := slices.Index(narrow.headings, column); at >= 0 {
			narrow, left = narrow.without(at), append(left, column)
		} else if column != "" {
			continue
		}
		l := plain
		if column == "" && len(left) > 0 {
			l = tight
		}
		if widths, ok := narrow.fit(width, l); ok {
			text := narrow.table(widths, false)
			if len(left) > 0 {
				text += "\n " + frameStyle.Render(ansi.Truncate("Too narrow for: "+strings.Join(left, ", "),
					width-1, "…"))
			}
			return text
		}
	}
	return g.below(width)
}

// spare are the columns that are left out of a table that is too wide, in this order.
var spare = []string{"attempts", "account", "evidence", "source", "processed", "paused", "completed",
	"second factor", "from", "accounts", "browser"}

func (g grid) without(column int) grid {
	cut := func(row []string) []string { return slices.Delete(slices.Clone(row), column, column+1) }
	out := grid{headings: cut(g.headings), rows: make([][]string, len(g.rows))}
	for i, row := range g.rows {
		out.rows[i] = cut(row)
	}
	return out
}

// table draws columns of these widths.
func (g grid) table(widths []int, framed bool) string {
	cut := func(row []string) []string {
		out := make([]string, len(row))
		for i, cell := range row {
			out[i] = ansi.Truncate(cell, widths[i], "…")
		}
		return out
	}
	rows := make([][]string, len(g.rows))
	for i, row := range g.rows {
		rows[i] = cut(row)
	}
	border := lipgloss.RoundedBorder()
	if !framed {
		border = lipgloss.NormalBorder()
	}
	return table.New().Border(border).BorderStyle(frameStyle).Wrap(false).
		BorderLeft(framed).BorderRight(framed).BorderTop(framed).BorderBottom(framed).BorderColumn(framed).
		Headers(cut(g.headings)...).Rows(rows...).
		StyleFunc(func(row, _ int) lipgloss.Style {
			if row == table.HeaderRow {
				return headingStyle
			}
			return cellStyle
		}).String()
}

// below returns the cells of each row below each other, behind their headings.
func (g grid) below(width int) string {
	name := 0
	for _, heading := range g.headings {
		name = max(name, lipgloss.Width(heading))
	}
	var b strings.Builder
	for r, row := range g.rows {
		if r > 0 {
			b.WriteByte('\n')
		}
		for i, cell := range row {
			if i < len(g.headings) {
				b.WriteString(boldStyle.Width(name + 2).Render(g.headings[i]))
			}
			if i > 0 {
				cell = ansi.Truncate(cell, max(10, width-name-2), "…")
			}
			b.WriteString(cell + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// leastState is the smallest width of a column that says what state something is in: wider than all states.
// Behind some of them stands a text.
const leastState = 16

// uncut returns how many cells of a column are never cut. The first is the id for the next command.
func (g grid) uncut(column, cells, least int) int {
	switch {
	case column == 0:
		return cells
	case column < len(g.headings) && slices.Contains([]string{"state", "status", "runs", "code"},
		g.headings[column]):
		return min(cells, leastState)
	}
	return min(cells, least)
}

// fit returns the widths of the columns, with the widest ones cut until the table fits, and whether it does.
func (g grid) fit(width int, l layout) (widths []int, fits bool) {
	widths = make([]int, len(g.headings))
	if len(g.headings) == 0 && len(g.rows) > 0 {
		widths = make([]int, len(g.rows[0]))
	}
	smallest, total := make([]int, len(widths)), l.whole
	for i := range widths {
		if i < len(g.headings) {
			widths[i] = lipgloss.Width(g.headings[i])
		}
		smallest[i] = min(widths[i], l.least)
		if l.headings {
			smallest[i] = widths[i]
		}
		cells := 0
		for _, row := range g.rows {
			cells = max(cells, lipgloss.Width(row[i]))
		}
		widths[i] = max(widths[i], cells)
		smallest[i] = max(smallest[i], g.uncut(i, cells, l.least))
		total += widths[i] + l.column
	}
	for ; total > width; total-- {
		widest := -1
		for i := range widths {
			if widths[i] > smallest[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return widths, false
		}
		widths[widest]--
	}
	return widths, true
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

// plural returns a number of things in words: 1 message, 2 messages.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(one, "y"))
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func orDash(s string) string { return cmp.Or(s, "-") }

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

func seconds(age float64) string { return span(time.Duration(age * float64(time.Second))) }
