package handlebars

import "slices"

// References are what a source asks for by name.
type References struct {
	Partials []string // each once, in the order of the alphabet; also those that it declares itself
	Computed bool     // the name of some partial is computed, so that any may be meant
	Block    bool     // it prints the block that is handed to it: {{> @partial-block}}
}

// Refer reads a source by itself and says which partials it includes, so that its reader knows what to look for before [Parse]. The errors
// are those of Parse, but for what has to do with the partials.
func Refer(text string, o Options) (References, error) {
	l := loader{template: &Template{options: o, limits: o.Limits.withDefaults()}, inlines: map[string]bool{}}
	if _, err := l.read("", text); err != nil {
		return References{}, err
	}
	r := References{Computed: l.dynamic, Block: l.opens}
	for _, c := range l.calls {
		r.Partials = append(r.Partials, c.name)
	}
	slices.Sort(r.Partials)
	r.Partials = slices.Compact(r.Partials)
	return r, nil
}
