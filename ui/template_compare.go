package ui

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// comparedView is the page of two versions of a template.
type comparedView struct {
	ID       string
	From, To int
	Parts    []comparedPart // those that differ
	Versions []api.TemplateVersionRow
}

type comparedPart struct {
	Name  string
	Lines []diffLine
}

// diffLine is a line of a comparison. Class is added, removed, left for lines that are not shown, or empty.
type diffLine struct{ Class, Mark, Text string }

// compareTemplate shows what differs between two versions.
func (u *UI) compareTemplate(w http.ResponseWriter, r *http.Request) error {
	id, _, _, err := templateOf(r)
	if err != nil {
		return err
	}
	view := comparedView{ID: id}
	var sides [2]api.TemplateVersion
	for i, name := range []string{"from", "to"} {
		number, err := strconv.Atoi(r.URL.Query().Get(name))
		if err != nil || number < 1 {
			return fault.InvalidField(name, "must be the number of a version")
		}
		if sides[i], err = u.Templates.Version(r.Context(), boundTo(r), id, number); err != nil {
			return err
		}
	}
	all, err := u.Templates.Versions(r.Context(), boundTo(r), id)
	if err != nil {
		return err
	}
	view.From, view.To, view.Versions = sides[0].Version, sides[1].Version, all.Versions
	before, after := partTexts(sides[0].TemplateDefinition), partTexts(sides[1].TemplateDefinition)
	names := slices.Sorted(maps.Keys(before))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, known := before[name]; !known {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if before[name] != after[name] {
			view.Parts = append(view.Parts, comparedPart{name, diff(before[name], after[name])})
		}
	}
	return u.show(w, r, http.StatusOK, "templatecompare", "Versions of "+id, view)
}

// partTexts returns the parts of a definition as texts by their names.
func partTexts(d api.TemplateDefinition) map[string]string {
	v := templateView{Template: api.Template{TemplateDefinition: d}}
	all := map[string]string{"sample": v.Sample(), "settings": "format: " + d.Format + "\nlayout: " + d.Layout +
		"\nmissing: " + d.Missing + "\ninlineCss: " + strconv.FormatBool(d.InlineCSS)}
	v.read()
	for _, variant := range v.Variants {
		at := "content"
		if variant.Locale != "" {
			at = "locales." + variant.Locale
		}
		for _, p := range variant.Parts {
			all[at+": "+strings.ToLower(p.Name)] = p.Text
		}
	}
	return all
}

const (
	diffAround = 3         // equal lines that are shown around a change
	diffCells  = 1_000_000 // beyond so many pairs of lines, all of the middle counts as changed
)

// diff returns the lines of two texts: those in common once, with the changes between them.
func diff(before, after string) []diffLine {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var all []diffLine
	say := func(class, mark string, lines ...string) {
		for _, line := range lines {
			all = append(all, diffLine{class, mark, line})
		}
	}
	say("", " ", a[:start]...)
	x, y := a[start:len(a)-end], b[start:len(b)-end]
	for _, pair := range commonLines(x, y) {
		say("removed", "−", x[:pair[0]]...)
		say("added", "+", y[:pair[1]]...)
		say("", " ", x[pair[0]])
		x, y = x[pair[0]+1:], y[pair[1]+1:]
	}
	say("removed", "−", x...)
	say("added", "+", y...)
	say("", " ", a[len(a)-end:]...)
	return shorten(all)
}

// commonLines returns a longest sequence of lines that two texts have in common, each as the distances from
// the one before.
func commonLines(a, b []string) [][2]int {
	if len(a)*len(b) > diffCells {
		return nil
	}
	longest := make([][]int, len(a)+1) // from here to the ends
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out [][2]int
	i, j, lastI, lastJ := 0, 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, [2]int{i - lastI, j - lastJ})
			i, j = i+1, j+1
			lastI, lastJ = i, j
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return out
}

// shorten leaves out equal lines that are far from any change.
func shorten(all []diffLine) []diffLine {
	near := make([]bool, len(all))
	for i, line := range all {
		if line.Class != "" {
			for k := max(0, i-diffAround); k <= min(len(all)-1, i+diffAround); k++ {
				near[k] = true
			}
		}
	}
	var out []diffLine
	for i := 0; i < len(all); i++ {
		if near[i] {
			out = append(out, all[i])
			continue
		}
		first := i
		for i+1 < len(all) && !near[i+1] {
			i++
		}
		out = append(out, diffLine{"left", " ", "… " + plural(i-first+1, "equal line", "equal lines")})
	}
	return out
}
