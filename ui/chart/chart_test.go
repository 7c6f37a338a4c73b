package chart

import (
	"encoding/xml"
	"errors"
	"flag"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the charts to testdata, then read the diff")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hours returns points an hour apart.
func hours(all ...[]int) []Point {
	points := make([]Point, len(all))
	for i, values := range all {
		points[i] = Point{At: noon.Add(time.Duration(i) * time.Hour), Values: values}
	}
	return points
}

// charts are the charts in testdata.
func charts() map[string]interface{ HTML() (template.HTML, error) } {
	names := []string{"sent", "opens", "clicks"}
	var month []Point
	for i := range 30 * 24 {
		month = append(month, Point{At: noon.Add(time.Duration(i) * time.Hour), Values: []int{i % 7, 5, i / 90}})
	}
	var domains []Share
	for i := range 60 {
		domains = append(domains, Share{Label: strconv.Itoa(i) + ".example.net", Values: []int{600 - 10*i, i, 0},
			Whole: 600 - 9*i})
	}
	return map[string]interface{ HTML() (template.HTML, error) }{
		"bars": Bars{ID: "hours", Title: "By hour", Names: names, Step: time.Hour,
			Points: append(hours([]int{120, 3}, []int{80, 40, 5}, []int{0, 10, 9}),
				Point{At: noon.Add(5 * time.Hour), Values: []int{0, 1, 0}})},
		"bars-none": Bars{ID: "hours", Title: "By hour", Names: names, Step: time.Hour},
		"bars-zeros": Bars{ID: "hours", Title: "By hour", Names: names, Step: time.Hour,
			Points: hours([]int{0, -5, 0})},
		"bars-one": Bars{ID: "hours", Title: "By hour", Names: names[:1], Step: time.Hour,
			Points: hours([]int{1})},
		"bars-huge": Bars{ID: "hours", Title: "By hour", Names: names[:2], Step: time.Hour,
			Points: hours([]int{math.MaxInt, math.MaxInt}, []int{1, 12_345_678})},
		"bars-days": Bars{ID: "days", Title: "Thirty days", Names: append(names, "bounced"), Step: day,
			Points: []Point{{At: noon, Values: []int{900, 80, 7, 1}},
				{At: noon.Add(29 * day), Values: []int{1, 2, 3, 4}}}},
		"bars-month": Bars{ID: "hours", Title: "By hour", Names: names, Step: time.Hour, Points: month},
		"shares": Shares{ID: "variants", Title: "Variants", Of: "Variant", Names: names[1:], Relative: true,
			Rows: []Share{{"a", []int{30, 5}, 120}, {"b", []int{20, 0}, 40}, {"c", []int{0, 0}, 0}}},
		"shares-none": Shares{ID: "links", Title: "Links", Of: "Link", Names: []string{"clicks"}},
		"shares-many": Shares{ID: "domains", Title: "Domains", Of: "Domain",
			Names: []string{"sent", "bounced", "failed"}, Rows: domains},
		"shares-huge": Shares{ID: "links", Title: "Links", Of: "Link", Names: []string{"clicks"},
			Rows: []Share{{"example.com/" + strings.Repeat("ü", 300), []int{math.MaxInt}, 0}, {"x", []int{1}, 0}}},
		"hostile": Shares{ID: "links", Title: "</title><script>", Of: "<i>", Names: []string{`"><b>`, "x"},
			Rows: []Share{{`<img src=x onerror="alert(1)">`, []int{3, 4}, 7},
				{"javascript:alert(1)", []int{2, 1}, 3}}},
	}
}

// TestCharts compares the charts with testdata, and each with the rules.
func TestCharts(t *testing.T) {
	t.Parallel()
	for name, c := range charts() {
		got, err := c.HTML()
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, name, string(got))
		file := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if strings.Contains(name, "none") || strings.Contains(name, "zeros") {
			if strings.Contains(string(got), "<svg") {
				t.Errorf("%s is drawn", name)
			}
			continue
		}
		for _, part := range []string{`role="img"`, "<title id=", "<desc id=", "<details", `<th scope="row"`} {
			if !strings.Contains(string(got), part) {
				t.Errorf("%s lacks %s", name, part)
			}
		}
	}
}

// number matches numbers of SVG that place or size something.
var number = regexp.MustCompile(` (?:x|y|x1|x2|y1|y2|width|height)="([^"]*)"`)

// wellFormed expects that a chart is XML, has no script and no style, refers only to its own ids, and draws
// nothing outside.
func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	if len(text) > 30_000 {
		t.Errorf("%s has %d bytes", name, len(text))
	}
	for _, m := range number.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(strings.TrimSuffix(m[1], "%"), 64)
		if most := 100.0; err != nil || n < 0 || n > 700 || strings.HasSuffix(m[1], "%") && n > most {
			t.Errorf("%s has %s", name, m[0])
		}
	}
	ids, used := map[string]bool{}, []string(nil)
	d := xml.NewDecoder(strings.NewReader(strings.ReplaceAll(strings.ReplaceAll(text, " data-absolute", ""),
		" data-keep", "")))
	d.Entity = xml.HTMLEntity
	d.Strict = false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		e, _ := token.(xml.StartElement)
		if e.Name.Local == "script" || e.Name.Local == "style" || e.Name.Local == "img" || e.Name.Local == "b" {
			t.Errorf("%s has a %s", name, e.Name.Local)
		}
		for _, a := range e.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
				t.Errorf("%s has %s=%q", name, a.Name.Local, a.Value)
			}
			if a.Name.Local == "id" {
				if ids[a.Value] {
					t.Errorf("%s has two %s", name, a.Value)
				}
				ids[a.Value] = true
			}
			if id, ok := strings.CutPrefix(a.Value, "url(#"); ok {
				used = append(used, strings.TrimSuffix(id, ")"))
			}
		}
	}
	for _, id := range used {
		if !ids[id] {
			t.Errorf("%s refers to %s, which is not there", name, id)
		}
	}
}

// TestManyTimesBecomeFewBars: nothing is lost when times are put together, and a phone has place for the
// texts.
func TestManyTimesBecomeFewBars(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 48, 49, 24 * 30, 24 * 365 * 20} {
		b := Bars{Names: []string{"sent"}, Step: time.Hour}
		for i := range n {
			b.Points = append(b.Points, Point{At: noon.Add(time.Duration(i) * time.Hour), Values: []int{2}})
		}
		step, slots := b.slots()
		sum := 0
		for i, slot := range slots {
			if sum += slot.Values[0]; i > 0 && slot.At.Sub(slots[i-1].At) != step {
				t.Errorf("%d hours: %s follows %s", n, slot.At, slots[i-1].At)
			}
		}
		if len(slots) > mostBars || len(slots) == 0 || sum != 2*n {
			t.Errorf("%d hours have %d bars with %d in all", n, len(slots), sum)
		}
		v := barsView{Heads: b.Names}
		if v.draw(slots, step, 10); len(v.Times) > 4 {
			t.Errorf("%d hours have %d texts below", n, len(v.Times))
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{0: "0", 9999: "9\u202f999", 10_000: "10k", 12_345: "12.3k",
		999_400: "999k", 999_600: "1M", 1_234_567: "1.23M", 5e9: "5B", 7e12: "7T", 1e18: "1e+06T"} {
		if got := short(n); got != want {
			t.Errorf("%g: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1234567: "1\u202f234\u202f567", -1234: "-1\u202f234",
		-123: "-123"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[float64]float64{1: 1, 3: 4, 4.5: 5, 7: 10, 120: 200, 1e18: 1e18} {
		if got := ceiling(n); got != want {
			t.Errorf("%g: %g, want %g", n, got, want)
		}
	}
	if _, err := (Bars{Names: make([]string, 5)}).HTML(); err == nil {
		t.Error("five series have no patterns")
	}
	if _, err := (Shares{Names: make([]string, 5)}).HTML(); err == nil {
		t.Error("five series have no patterns")
	}
}
