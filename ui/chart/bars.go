package chart

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

//go:embed chart.html
var source embed.FS

var pages = template.Must(template.ParseFS(source, "chart.html"))

const (
	mostSeries = 4  // as many as there are patterns
	mostBars   = 48 // of a drawing
	leastSlots = 12 // places for bars, so that a single one does not fill the drawing
	plotTop    = 20.0
	plotBase   = 160.0
)

// Bars are figures over time. Those of one time stand on each other.
type Bars struct {
	ID     string // unique in the page: letters, digits and -
	Title  string
	Names  []string      // of the series, at most 4
	Step   time.Duration // between two times: an hour or more
	Points []Point       // in the order of their times; those that are missing are 0
	// the figures are levels, such as durations: no totals are shown, and Points must be few enough
	Levels bool
}

// Point has the figures of one time, by series.
type Point struct {
	At     time.Time
	Values []int
}

type series struct {
	Number      int // of its pattern, from 1
	Name, Total string
}

func legend(names []string, sums []float64) []series {
	all := make([]series, len(names))
	for i, name := range names {
		all[i] = series{Number: i + 1, Name: name, Total: short(sums[i])}
	}
	return all
}

// bar is a bar at its place. Numbers are as SVG has them.
type bar struct {
	Number      int // of its pattern
	X, Y, W, H  string
	Value, Text string // beside it
}

// column is the bars of one time.
type column struct {
	Tip  string
	Bars []bar
}

// mark is a text of an axis.
type mark struct {
	X, Y, Text string
	At, Form   string // for the script, which puts the time of the viewer's zone in place of Text
}

type row struct {
	At, Text string // At: of a time
	Cells    []string
}

type barsView struct {
	ID, Title, Summary string
	Series             []series
	Lines, Times       []mark
	Columns            []column
	First              string // heading of the first column
	Heads              []string
	Rows               []row
	Zoned              bool // its times are within days
}

// HTML returns the chart.
func (b Bars) HTML() (template.HTML, error) {
	if len(b.Names) > mostSeries {
		return "", fmt.Errorf("chart %s: names has %d series, and there are %d patterns", b.ID,
			len(b.Names), mostSeries)
	}
	step, slots := b.slots()
	sums, most := make([]float64, len(b.Names)), 0.0
	for _, slot := range slots {
		high := 0.0
		for i := range b.Names {
			high += float64(slot.Values[i])
			sums[i] += float64(slot.Values[i])
		}
		most = max(most, high)
	}
	v := barsView{ID: b.ID, Title: b.Title, Series: legend(b.Names, sums), First: heading(step), Heads: b.Names,
		Zoned: step < day}
	if most > 0 {
		top := ceiling(most)
		v.draw(slots, step, top)
		v.Lines = lines(top)
		if b.Levels {
			for i := range v.Series {
				v.Series[i].Total = ""
			}
		}
		v.Summary = fmt.Sprintf("%s, from %s to %s. The most in one bar are %s.", totals(v.Series),
			moment(slots[0].At, step), moment(slots[len(slots)-1].At, step), short(most))
	}
	return render("bars", v)
}

func render(name string, data any) (template.HTML, error) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("draw a chart: %w", err)
	}
	return template.HTML(b.String()), nil
}

const day = 24 * time.Hour

// steps are those that times are put together to. Beyond the last one they double.
var steps = []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day,
	2 * day, 7 * day, 14 * day, 28 * day}

// slots returns the points put together so that the bars are not too many, and one for each time without any.
func (b Bars) slots() (time.Duration, []Point) {
	if len(b.Points) == 0 {
		return b.Step, nil
	}
	first, last := b.Points[0].At.UTC(), b.Points[len(b.Points)-1].At.UTC()
	step := max(b.Step, time.Hour)
	number := func() int { return int(last.Sub(first.Truncate(step))/step) + 1 }
	for _, next := range steps {
		if number() > mostBars && next > step && next%step == 0 {
			step = next
		}
	}
	for number() > mostBars {
		step *= 2
	}
	slots := make([]Point, number())
	for i := range slots {
		slots[i] = Point{At: first.Truncate(step).Add(time.Duration(i) * step), Values: make([]int, len(b.Names))}
	}
	for _, p := range b.Points {
		i := min(max(0, int(p.At.Sub(slots[0].At)/step)), len(slots)-1)
		for s := range b.Names {
			sum := &slots[i].Values[s]
			*sum += min(at(p.Values, s), math.MaxInt-*sum)
		}
	}
	return step, slots
}

// draw fills in the columns, the texts below them, and the table.
func (v *barsView) draw(slots []Point, step time.Duration, top float64) {
	places := max(len(slots), leastSlots)
	wide := 100 / float64(places)
	each := (places + 3) / 4 // four texts fit on a phone
	form := "moment"
	if span := slots[len(slots)-1].At.Sub(slots[0].At); step < day && span < day {
		form = "hour"
	} else if step >= day {
		form = ""
	}
	for i, slot := range slots {
		x := float64(i) * wide
		if i%each == 0 {
			v.Times = append(v.Times, mark{X: coordinate(x), Text: slot.At.Format(layouts[form]), At: iso(slot.At),
				Form: form})
		}
		y, said := plotBase, []string(nil)
		col, cells := column{}, make([]string, len(slot.Values))
		for s, n := range slot.Values {
			if cells[s] = Count(n); n == 0 {
				continue
			}
			high := max(1, float64(n)/top*(plotBase-plotTop))
			y -= high
			col.Bars = append(col.Bars, bar{Number: s + 1, X: coordinate(x + wide*.08), W: coordinate(wide * .84),
				Y: coordinate(y), H: coordinate(high)})
			said = append(said, Count(n)+" "+v.Heads[s])
		}
		if said == nil {
			continue
		}
		col.Tip = moment(slot.At, step) + ": " + strings.Join(said, ", ")
		v.Columns = append(v.Columns, col)
		r := row{Text: moment(slot.At, step), Cells: cells}
		if step < day {
			r.At = iso(slot.At)
		}
		v.Rows = append(v.Rows, r)
	}
}

// layouts are the forms of times below the bars.
var layouts = map[string]string{"hour": "15:04", "moment": "2 Jan 15:04", "": "2 Jan"}

// lines returns the lines behind the bars, with their numbers.
func lines(top float64) []mark {
	all := []mark{{Y: coordinate(plotTop), Text: short(top)}, {Y: coordinate(plotBase), Text: ""}}
	if half := top / 2; half == math.Trunc(half) {
		all = append(all, mark{Y: coordinate((plotTop + plotBase) / 2), Text: short(half)})
	}
	return all
}

// ceiling returns the least of 1, 2, 4, 5 or 10 times a power of ten that is not below a number.
func ceiling(n float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(n)))
	for _, times := range []float64{1, 2, 4, 5} {
		if n <= times*power {
			return times * power
		}
	}
	return 10 * power
}

func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func moment(t time.Time, step time.Duration) string {
	if step >= day {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// heading returns what the first column of the table has.
func heading(step time.Duration) string {
	switch {
	case step <= time.Hour:
		return "Hour"
	case step < day:
		return fmt.Sprintf("%d hours from", step/time.Hour)
	case step == day:
		return "Day"
	}
	return fmt.Sprintf("%d days from", step/day)
}

func totals(all []series) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = strings.TrimSpace(s.Total + " " + s.Name)
	}
	return strings.Join(words, ", ")
}
