package handlebars

import "slices"

// References are the partials that a source uses.
type References struct {
	Partials []string // each once, sorted; includes those that it declares itself
	Computed bool     // some partial name is computed, so any partial may be used
	Block    bool     // it prints the block passed to it: {{> @partial-block}}
}

// Refer parses a source alone and returns the partials it includes, so that they can be loaded before
// [Parse]. The errors are those of Parse, except errors about partials.
func Refer(text string, o Options) (References, error) {
	l := loader{template: &Template{options: o, limits: o.Limits.withDefaults()}, inlines: map[string]bool{}}
	if err := catch(func() { l.read("", text) }); err != nil {
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
