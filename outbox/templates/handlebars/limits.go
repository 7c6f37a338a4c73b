package handlebars

// Limits are the resource limits of a template. A zero field means its default; no limit can be disabled.
type Limits struct {
	Source       int // bytes of one template or partial; 256 KB
	TotalSource  int // bytes of a template and all its partials together; 1 MB
	Nesting      int // blocks inside blocks, and expressions inside expressions; 64
	Branches     int // {{else if}} of one block; 256
	PartialDepth int // partials, and blocks passed to them, inside partials; 16
	Steps        int // parts evaluated in one execution; 1,000,000
	Output       int // bytes written by one execution; 2 MB
}

func (l Limits) withDefaults() Limits {
	fill := func(value *int, def int) {
		if *value <= 0 {
			*value = def
		}
	}
	fill(&l.Source, 256<<10)
	fill(&l.TotalSource, 1<<20)
	fill(&l.Nesting, 64)
	fill(&l.Branches, 256)
	fill(&l.PartialDepth, 16)
	fill(&l.Steps, 1_000_000)
	fill(&l.Output, 2<<20)
	return l
}
