package opensearch_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// search answers a _search.
func (c *cluster) search(x *index, raw []byte) (int, any) {
	var body struct {
		Query   map[string]any      `json:"query"`
		Size    int                 `json:"size"`
		From    int                 `json:"from"`
		Track   bool                `json:"track_total_hits"`
		Source  []string            `json:"_source"`
		Sort    []map[string]string `json:"sort"`
		After   []any               `json:"search_after"`
		Timeout string              `json:"timeout"`
		Aggs    map[string]struct {
			Terms struct {
				Field string              `json:"field"`
				Size  int                 `json:"size"`
				Order []map[string]string `json:"order"`
			} `json:"terms"`
		} `json:"aggs"`
	}
	c.read(raw, &body)
	if body.From+body.Size > 10_001 || body.From > 0 && body.After != nil || len(body.After) > 0 &&
		len(body.After) != len(body.Sort) {
		return 400, failure("illegal_argument_exception",
			"Result window is too large, or search_after does not fit")
	}
	if !slices.Equal(body.Source, []string{"source"}) {
		c.t.Errorf("a search wants the source %v", body.Source)
	}
	type hit struct {
		d    *doc
		sort []any
	}
	var hits []hit
	for _, d := range x.docs {
		matched, score := c.matches(x, body.Query, d.body)
		if !matched {
			continue
		}
		h := hit{d: d}
		for _, s := range body.Sort {
			for name := range s {
				h.sort = append(h.sort, c.sortValue(x, name, d, score))
			}
		}
		hits = append(hits, h)
	}
	compare := func(a, b []any) int {
		for i, s := range body.Sort {
			for _, direction := range s {
				n := compareValues(a[i], b[i])
				if direction == "desc" {
					n = -n
				}
				if n != 0 {
					return n
				}
			}
		}
		return 0
	}
	slices.SortFunc(hits, func(a, b hit) int { return compare(a.sort, b.sort) })
	total, aggs := len(hits), map[string]any{}
	for name, a := range body.Aggs {
		if f := x.fields[a.Terms.Field]; f.Type != "keyword" || f.DocValues != nil && !*f.DocValues ||
			fmt.Sprint(a.Terms.Order) != "[map[_count:desc] map[_key:asc]]" {
			c.t.Errorf("facet %s of field %s (%+v) in the order %v", name, a.Terms.Field, f, a.Terms.Order)
		}
		counts := map[string]int{}
		for _, h := range hits {
			for _, v := range texts(h.d.body[a.Terms.Field]) {
				counts[v]++
			}
		}
		values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
			return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
		})
		buckets := []any{}
		for _, v := range values[:min(len(values), a.Terms.Size)] {
			buckets = append(buckets, map[string]any{"key": v, "doc_count": counts[v]})
		}
		aggs[name] = map[string]any{"doc_count_error_upper_bound": 0, "sum_other_doc_count": 0, "buckets": buckets}
	}
	if body.After != nil {
		hits = slices.DeleteFunc(hits, func(h hit) bool { return compare(h.sort, body.After) <= 0 })
	}
	hits = hits[min(body.From, len(hits)):]
	rows := []any{}
	for _, h := range hits[:min(body.Size, len(hits))] {
		rows = append(rows, map[string]any{"_id": h.d.id, "_score": nil, "_source": map[string]any{
			"source": h.d.body["source"]}, "sort": h.sort})
	}
	answer := map[string]any{"took": 1, "timed_out": false, "hits": map[string]any{
		"hits": rows, "max_score": nil}}
	if body.Track {
		answer["hits"].(map[string]any)["total"] = map[string]any{"value": total, "relation": "eq"}
	}
	if body.Aggs != nil {
		answer["aggregations"] = aggs
	}
	return 200, answer
}

// sortValue is what a document is sorted by.
func (c *cluster) sortValue(x *index, name string, d *doc, score float64) any {
	if name == "_score" {
		return score
	}
	f, ok := x.fields[name]
	if !ok || f.Type == "text" || f.DocValues != nil && !*f.DocValues {
		c.t.Errorf("sorted by %s, which is %+v", name, f)
	}
	return d.body[name]
}

func compareValues(a, b any) int {
	x, okA := number(a)
	y, okB := number(b)
	if okA && okB {
		return cmp.Compare(x, y)
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

// texts are the values of a field.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, each := range v {
			if s, ok := each.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// matches evaluates a query, and how well it fits: the boosts of what matched, each as often as it occurs.
func (c *cluster) matches(x *index, q map[string]any, body map[string]any) (bool, float64) {
	if len(q) != 1 {
		c.t.Errorf("a query with %d kinds: %v", len(q), q)
		return false, 0
	}
	for kind, arg := range q {
		inner, ok := arg.(map[string]any)
		if !ok {
			c.t.Errorf("the argument of %s is %v", kind, arg)
			return false, 0
		}
		switch kind {
		case "match_all":
			return true, 1
		case "match_none":
			return false, 0
		case "bool":
			return c.boolean(x, inner, body)
		case "term", "prefix", "match_phrase", "match_phrase_prefix", "range":
			return c.leaf(x, kind, inner, body)
		}
		c.t.Errorf("a query of unknown kind %s", kind)
	}
	return false, 0
}

func (c *cluster) boolean(x *index, q map[string]any, body map[string]any) (bool, float64) {
	score, should, wanted := 0.0, 0, 0
	for kind, arg := range q {
		if kind == "minimum_should_match" {
			n, _ := number(arg)
			wanted = int(n)
			continue
		}
		parts, ok := arg.([]any)
		if !ok || !slices.Contains([]string{"must", "filter", "must_not", "should"}, kind) {
			c.t.Errorf("bool has %s: %v", kind, arg)
		}
		for _, part := range parts {
			matched, fits := c.matches(x, part.(map[string]any), body)
			switch {
			case kind == "must_not" && matched, (kind == "must" || kind == "filter") && !matched:
				return false, 0
			case kind == "should" && matched:
				should++
			}
			if kind == "must" || kind == "should" {
				score += fits
			}
		}
	}
	return should >= wanted, score
}

func (c *cluster) leaf(x *index, kind string, q map[string]any, body map[string]any) (bool, float64) {
	for name, arg := range q {
		f, known := x.fields[name]
		args := arg.(map[string]any)
		if !known || len(q) != 1 {
			c.t.Errorf("%s of %v", kind, q)
		}
		boost, ok := number(args["boost"])
		if !ok {
			boost = 1
		}
		values := texts(body[name])
		if f.Type == "text" {
			values = strings.Fields(strings.Join(values, " "))
		}
		often := 0
		switch kind {
		case "range":
			at, _ := number(body[name])
			from, lower := number(args["gte"])
			until, upper := number(args["lt"])
			return (!lower || at >= from) && (!upper || at < until) && len(args) > 0, 1
		case "match_phrase", "match_phrase_prefix":
			words := strings.Fields(args["query"].(string))
			last := len(words) - 1
			for i := range values {
				if i+last < len(values) && slices.Equal(values[i:i+last], words[:last]) &&
					(values[i+last] == words[last] || kind != "match_phrase" &&
						strings.HasPrefix(values[i+last], words[last])) {
					often++
				}
			}
		default:
			value := args["value"].(string)
			for _, v := range values {
				if kind == "term" && v == value || kind == "prefix" && strings.HasPrefix(v, value) {
					often++
				}
			}
			if kind == "prefix" {
				often = min(often, 1)
			}
		}
		n := float64(often)
		return often > 0, boost * n / (n + 1.2)
	}
	return false, 0
}
