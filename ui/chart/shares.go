package chart

import (
	"fmt"
	"html/template"
	"strings"
)

const (
	mostDrawn = 10   // rows of a drawing
	mostRows  = 30   // of the table
	mostText  = 200  // characters of a label in the table
	longest   = 55.0 // percent of the width, so that the figures have place beside the bars
	mostLabel = 44   // characters of a label: as many as fit on a phone
)

// Shares are rows of horizontal bars, one for each series, with its figure and its share beside it.
type Shares struct {
	ID    string // unique in the page: letters, digits and -
	Title string
	Of    string   // what a row is of: heading of the first column
	Names []string // of the series, at most 4
	Rows  []Share  // the most important first
	// Relative: bars are as long as their shares, and else as their figures
	Relative bool
}

// Share is a row.
type Share struct {
	Label  string
	Values []int // by series
	Whole  int   // what the values are shares of; 0: of nothing
}

// band is a row as it is drawn.
type band struct {
	Tip, Label, Y string
	Bars          []bar
}

type sharesView struct {
	ID, Title, Summary string
	Series             []series
	Height             string
	Bands              []band
	First              string
	Heads              []string
	Rows               []row
	Drawn, Listed, All string // All: empty if all rows are drawn
}

// HTML returns the chart.
func (c Shares) HTML() (template.HTML, error) {
	if len(c.Names) > mostSeries {
		return "", fmt.Errorf("chart %s: names has %d series, and there are %d patterns", c.ID,
			len(c.Names), mostSeries)
	}
	sums, most := make([]float64, len(c.Names)), 0.0
	for _, r := range c.Rows {
		for i := range c.Names {
			sums[i] += float64(at(r.Values, i))
			most = max(most, c.size(r, i))
		}
	}
	v := sharesView{ID: c.ID, Title: c.Title, Series: legend(c.Names, sums), First: c.Of}
	if most > 0 {
		v.Summary = totals(v.Series) + "."
		v.draw(c, most)
		v.list(c)
	}
	return render("shares", v)
}

// size returns what the length of a bar stands for.
func (c Shares) size(r Share, i int) float64 {
	n := float64(at(r.Values, i))
	if c.Relative {
		return n / float64(max(1, r.Whole))
	}
	return n
}

// draw fills in the rows that are drawn.
func (v *sharesView) draw(c Shares, most float64) {
	y := 0.0
	for _, r := range c.Rows[:min(len(c.Rows), mostDrawn)] {
		b := band{Label: clip(r.Label, mostLabel), Y: coordinate(y + 13)}
		y += 18
		var said []string
		for i, name := range c.Names {
			n := at(r.Values, i)
			if n == 0 && (i < len(c.Names)-1 || len(b.Bars) > 0) {
				continue // the figure of one at least is there
			}
			text, full := short(float64(n)), Count(n)+" "+name
			if of := percent(n, r.Whole); of != "" {
				text, full = text+" · "+of, full+" ("+of+")"
			}
			b.Bars = append(b.Bars, bar{Number: i + 1, W: coordinate(c.size(r, i) / most * longest),
				Y: coordinate(y), H: "11",
				Value: coordinate(y + 10), Text: text})
			said = append(said, full)
			y += 15
		}
		b.Tip = clip(r.Label, mostText) + ": " + strings.Join(said, ", ")
		v.Bands = append(v.Bands, b)
		y += 8
	}
	v.Height = coordinate(y)
}

// list fills in the table.
func (v *sharesView) list(c Shares) {
	shared := false
	for _, r := range c.Rows {
		shared = shared || r.Whole > 0
	}
	for _, name := range c.Names {
		if v.Heads = append(v.Heads, name); shared {
			v.Heads = append(v.Heads, name+", share")
		}
	}
	for _, r := range c.Rows[:min(len(c.Rows), mostRows)] {
		one := row{Text: clip(r.Label, mostText)}
		for i := range c.Names {
			n := at(r.Values, i)
			if one.Cells = append(one.Cells, Count(n)); shared {
				one.Cells = append(one.Cells, percent(n, r.Whole))
			}
		}
		v.Rows = append(v.Rows, one)
	}
	if len(c.Rows) > mostDrawn {
		v.Drawn, v.Listed, v.All = Count(mostDrawn), Count(len(v.Rows)), Count(len(c.Rows))
	}
}
