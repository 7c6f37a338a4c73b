package opensearch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// cluster is a server that plays OpenSearch, or an Elasticsearch: there is none on the machines that test
// Postroom. It knows the requests that package outbox/search/opensearch makes, as the published API describes
// them. It fails the test at any other, at an unknown field or parameter, and at a wrong content type. Its
// indexes are in memory, and queries really look into them.
type cluster struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	templates map[string]template
	indexes   map[string]*index
	faults    []fault
	requests  []string // method and path of each
}

// fault is what happens to the next request whose path ends so, instead of what it asks for.
type fault struct {
	suffix string
	do     http.HandlerFunc
}

type template struct {
	patterns []string
	fields   map[string]field
}

type field struct {
	Type      string `json:"type"`
	Analyzer  string `json:"analyzer"`
	Norms     *bool  `json:"norms"`
	DocValues *bool  `json:"doc_values"`
	Enabled   *bool  `json:"enabled"`
}

type index struct {
	aliases []string
	meta    map[string]any
	fields  map[string]field
	docs    map[string]*doc
}

type doc struct {
	id      string
	version int64
	body    map[string]any
}

// startCluster runs a cluster until the test ends.
func startCluster(t *testing.T) *cluster {
	c := &cluster{t: t, templates: map[string]template{}, indexes: map[string]*index{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

// address is where the cluster is, for somebody who says so: "user:password@", or finder.
func (c *cluster) address(who string) string {
	return strings.Replace(c.URL, "http://", "http://"+who, 1)
}

// finder is who may use the cluster.
const finder = "finder:s3cret@"

// failNext has something else happen to the next request whose path ends so: [answers], or [hangsUp].
func (c *cluster) failNext(suffix string, do http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fault{suffix, do})
}

// healed forgets the faults that have not happened yet.
func (c *cluster) healed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// lost deletes all indexes, as an operator may.
func (c *cluster) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.indexes)
}

// foreign makes an index that is not ours, with an alias.
func (c *cluster) foreign(name, alias string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.indexes[name] = &index{aliases: []string{alias}, meta: map[string]any{}, fields: map[string]field{},
		docs: map[string]*doc{}}
}

// countRequests counts the requests of a method to a path.
func (c *cluster) countRequests(method, path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, r := range c.requests {
		if r == method+" "+path {
			n++
		}
	}
	return n
}

// answers is a fault that answers, with a Retry-After where it is not empty.
func answers(status int, after, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangsUp is a fault that cuts the connection.
func hangsUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r.Method+" "+r.URL.Path)
	for i, f := range c.faults {
		if strings.HasSuffix(r.URL.Path, f.suffix) {
			c.faults = slices.Delete(c.faults, i, i+1)
			_, _ = io.Copy(io.Discard, r.Body)
			f.do(w, r)
			return
		}
	}
	if user, password, ok := r.BasicAuth(); !ok || user+":"+password+"@" != finder {
		c.answer(w, 401, failure("security_exception", "missing authentication credentials"))
		return
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has given up
	}
	status, body := c.handle(r, raw)
	c.answer(w, status, body)
}

func (c *cluster) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func failure(kind, why string) any {
	return map[string]any{"error": map[string]any{"type": kind, "reason": why, "root_cause": []any{}},
		"status": 0}
}

// handle is the table of routes.
func (c *cluster) handle(r *http.Request, raw []byte) (int, any) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	want := "application/json"
	if last == "_bulk" {
		want = "application/x-ndjson"
	}
	if got := r.Header.Get("Content-Type"); len(raw) > 0 && got != want || len(raw) == 0 && got != "" {
		c.t.Errorf("%s %s: %d bytes of content type %q, want %q", r.Method, r.URL.Path, len(raw), got, want)
	}
	if r.URL.RawQuery != "" && last != "_mget" && last != "_delete_by_query" {
		c.t.Errorf("%s %s: parameters %s", r.Method, r.URL.Path, r.URL.RawQuery)
	}
	switch route := r.Method + " " + last; {
	case r.Method == "PUT" && parts[0] == "_index_template" && len(parts) == 2:
		return c.putTemplate(parts[1], raw)
	case r.Method == "GET" && parts[0] == "_alias" && len(parts) == 2:
		return c.getAlias(func(_ string, x *index) bool { return slices.Contains(x.aliases, parts[1]) }, true)
	case route == "GET _alias" && len(parts) == 2:
		return c.getAlias(func(name string, _ *index) bool { ok, _ := path.Match(parts[0], name); return ok },
			false)
	case route == "POST _aliases" && len(parts) == 1:
		return c.changeAliases(raw)
	case route == "POST _bulk" && len(parts) == 1:
		return c.bulk(raw)
	case r.Method == "PUT" && len(parts) == 1:
		return c.create(parts[0], raw)
	case r.Method == "DELETE" && len(parts) == 1:
		if c.indexes[parts[0]] == nil {
			return 404, failure("index_not_found_exception", "no such index")
		}
		delete(c.indexes, parts[0])
		return 200, map[string]any{"acknowledged": true}
	}
	name, x := c.find(parts[0])
	if x == nil {
		return 404, failure("index_not_found_exception", "no such index ["+parts[0]+"]")
	}
	switch strings.Join(append([]string{r.Method}, parts[1:]...), " ") {
	case "GET _mapping":
		return 200, map[string]any{name: map[string]any{"mappings": map[string]any{"_meta": x.meta}}}
	case "POST _refresh":
		return 200, map[string]any{"_shards": map[string]any{"failed": 0}}
	case "GET _stats docs,store":
		size := map[string]any{"docs": map[string]any{"count": len(x.docs), "deleted": 0}, "store": map[string]any{
			"size_in_bytes": 1000 * len(x.docs)}}
		return 200, map[string]any{"_all": map[string]any{"primaries": size, "total": size}}
	case "POST _mget":
		return c.mget(x, r, raw)
	case "POST _search":
		return c.search(x, raw)
	case "POST _delete_by_query":
		return c.deleteByQuery(x, r, raw)
	}
	c.t.Errorf("a request that nobody knows: %s %s", r.Method, r.URL.Path)
	return 400, failure("illegal_argument_exception", "unknown request")
}

// read reads a body, and fails the test at a field it does not know.
func (c *cluster) read(raw []byte, into any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		c.t.Errorf("a body that is not as it should be: %v in %.300s", err, raw)
	}
}

// find gives an index by its name or by an alias that only it has.
func (c *cluster) find(name string) (string, *index) {
	if x := c.indexes[name]; x != nil {
		return name, x
	}
	for _, n := range slices.Sorted(maps.Keys(c.indexes)) {
		if slices.Contains(c.indexes[n].aliases, name) {
			return n, c.indexes[n]
		}
	}
	return "", nil
}

func (c *cluster) putTemplate(name string, raw []byte) (int, any) {
	var body struct {
		Patterns []string `json:"index_patterns"`
		Template struct {
			Settings struct {
				Index struct {
					Shards   int    `json:"number_of_shards"`
					Replicas string `json:"auto_expand_replicas"`
					Refresh  string `json:"refresh_interval"`
					Window   int    `json:"max_result_window"`
				} `json:"index"`
				Analysis struct {
					Analyzer map[string]struct {
						Type      string `json:"type"`
						Tokenizer string `json:"tokenizer"`
					} `json:"analyzer"`
				} `json:"analysis"`
			} `json:"settings"`
			Mappings struct {
				Dynamic string `json:"dynamic"`
				Source  struct {
					Includes []string `json:"includes"`
				} `json:"_source"`
				Properties map[string]field `json:"properties"`
			} `json:"mappings"`
		} `json:"template"`
	}
	c.read(raw, &body)
	t := body.Template
	if len(body.Patterns) != 1 || t.Mappings.Dynamic != "strict" ||
		t.Settings.Analysis.Analyzer["words"].Tokenizer != "whitespace" || t.Settings.Index.Window < 10_001 {
		c.t.Errorf("template %s: %s", name, raw)
	}
	for name, f := range t.Mappings.Properties {
		if !slices.Contains([]string{"text", "keyword", "long", "object"}, f.Type) || f.Type == "text" &&
			f.Analyzer != "words" {
			c.t.Errorf("field %s is %+v", name, f)
		}
	}
	c.templates[name] = template{body.Patterns, t.Mappings.Properties}
	return 200, map[string]any{"acknowledged": true}
}

func (c *cluster) create(name string, raw []byte) (int, any) {
	var body struct {
		Aliases  map[string]struct{} `json:"aliases"`
		Mappings struct {
			Meta map[string]any `json:"_meta"`
		} `json:"mappings"`
	}
	c.read(raw, &body)
	if c.indexes[name] != nil {
		return 400, failure("resource_already_exists_exception", "index exists")
	}
	if name != strings.ToLower(name) || strings.ContainsAny(name, `\/*?"<>| ,#:`) ||
		strings.HasPrefix(name, "_") || strings.HasPrefix(name, "-") {
		return 400, failure("invalid_index_name_exception", name)
	}
	x := &index{aliases: slices.Sorted(maps.Keys(body.Aliases)), meta: body.Mappings.Meta,
		docs: map[string]*doc{}}
	for _, t := range c.templates {
		if ok, _ := path.Match(t.patterns[0], name); ok {
			x.fields = t.fields
		}
	}
	if x.fields == nil {
		c.t.Errorf("no template is about index %s", name)
	}
	c.indexes[name] = x
	return 200, map[string]any{"acknowledged": true, "index": name}
}

func (c *cluster) getAlias(wanted func(string, *index) bool, missing bool) (int, any) {
	found := map[string]any{}
	for name, x := range c.indexes {
		if wanted(name, x) {
			aliases := map[string]any{}
			for _, a := range x.aliases {
				aliases[a] = map[string]any{}
			}
			found[name] = map[string]any{"aliases": aliases}
		}
	}
	if len(found) == 0 && missing {
		return 404, map[string]any{"error": "alias [x] missing", "status": 404}
	}
	return 200, found
}

func (c *cluster) changeAliases(raw []byte) (int, any) {
	type change struct{ Index, Alias string }
	var body struct {
		Actions []struct{ Add, Remove *change }
	}
	c.read(raw, &body)
	for _, a := range body.Actions {
		switch {
		case a.Add != nil && c.indexes[a.Add.Index] != nil:
			x := c.indexes[a.Add.Index]
			x.aliases = append(x.aliases, a.Add.Alias)
		case a.Remove != nil && c.indexes[a.Remove.Index] != nil:
			x := c.indexes[a.Remove.Index]
			x.aliases = slices.DeleteFunc(x.aliases, func(s string) bool { return s == a.Remove.Alias })
		default:
			return 404, failure("index_not_found_exception", "no such index")
		}
	}
	return 200, map[string]any{"acknowledged": true}
}

func (c *cluster) bulk(raw []byte) (int, any) {
	if !bytes.HasSuffix(raw, []byte("\n")) {
		return 400, failure("illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]")
	}
	lines := bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
	if len(lines)%2 != 0 {
		c.t.Errorf("a bulk of %d lines", len(lines))
		return 400, failure("illegal_argument_exception", "Malformed action/metadata line")
	}
	items, errs := []any{}, false
	for i := 0; i < len(lines); i += 2 {
		var action struct {
			Index struct {
				Index   string      `json:"_index"`
				ID      string      `json:"_id"`
				Version json.Number `json:"version"`
				Type    string      `json:"version_type"`
				Alias   bool        `json:"require_alias"`
			} `json:"index"`
		}
		c.read(lines[i], &action)
		status, kind := c.write(action.Index.Index, action.Index.ID, action.Index.Version, lines[i+1])
		if a := action.Index; a.Type != "external" || !a.Alias || a.ID == "" {
			c.t.Errorf("the action of a bulk is %s", lines[i])
		}
		item := map[string]any{"_index": action.Index.Index, "_id": action.Index.ID, "status": status}
		if kind != "" {
			errs, item["error"] = true, map[string]any{"type": kind, "reason": "because of " + action.Index.ID}
		}
		items = append(items, map[string]any{"index": item})
	}
	return 200, map[string]any{"took": 1, "errors": errs, "items": items}
}

// write writes one document of a bulk.
func (c *cluster) write(name, id string, version json.Number, raw []byte) (status int, kind string) {
	_, x := c.find(name)
	if x == nil || c.indexes[name] != nil {
		return 404, "index_not_found_exception" // require_alias
	}
	rev, err := version.Int64()
	if err != nil {
		return 400, "illegal_argument_exception"
	}
	body := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		return 400, "mapper_parsing_exception"
	}
	for field, value := range body {
		switch f, ok := x.fields[field]; {
		case !ok:
			c.t.Errorf("a document has the field %s, which is not in the template", field)
			return 400, "strict_dynamic_mapping_exception"
		case f.Type == "keyword" && len(texts(value)) == 0, f.Type == "text" && len(texts(value)) != 1:
			c.t.Errorf("field %s is %v", field, value)
			return 400, "mapper_parsing_exception"
		}
	}
	if strings.Contains(fmt.Sprint(body["subject"]), "poison") {
		return 400, "mapper_parsing_exception"
	}
	if old := x.docs[id]; old != nil && old.version >= rev {
		return 409, "version_conflict_engine_exception"
	}
	x.docs[id] = &doc{id: id, version: rev, body: body}
	return 201, ""
}

func (c *cluster) mget(x *index, r *http.Request, raw []byte) (int, any) {
	var body struct {
		IDs []string `json:"ids"`
	}
	c.read(raw, &body)
	if r.URL.RawQuery != "_source_includes=source.text,source.textKnown" {
		c.t.Errorf("_mget with %s", r.URL.RawQuery)
	}
	docs := []any{}
	for _, id := range body.IDs {
		d := x.docs[id]
		if d == nil {
			docs = append(docs, map[string]any{"_id": id, "found": false})
			continue
		}
		whole, part := d.body["source"].(map[string]any), map[string]any{}
		for _, name := range []string{"text", "textKnown"} {
			if value, ok := whole[name]; ok {
				part[name] = value
			}
		}
		docs = append(docs, map[string]any{"_id": id, "found": true, "_source": map[string]any{"source": part}})
	}
	return 200, map[string]any{"docs": docs}
}

func (c *cluster) deleteByQuery(x *index, r *http.Request, raw []byte) (int, any) {
	var body struct {
		Query map[string]any `json:"query"`
		Max   json.Number    `json:"max_docs"`
	}
	c.read(raw, &body)
	if r.URL.RawQuery != "conflicts=proceed&refresh=true" {
		c.t.Errorf("_delete_by_query with %s", r.URL.RawQuery)
	}
	max, err := body.Max.Int64()
	if err != nil || max < 1 {
		return 400, failure("illegal_argument_exception", "max_docs")
	}
	deleted := 0
	if ids, ok := body.Query["ids"].(map[string]any); ok {
		for _, id := range texts(ids["values"]) {
			if x.docs[id] != nil {
				delete(x.docs, id)
				deleted++
			}
		}
		return 200, map[string]any{"deleted": deleted, "failures": []any{}}
	}
	for id, d := range x.docs {
		if matched, _ := c.matches(x, body.Query, d.body); matched && int64(deleted) < max {
			delete(x.docs, id)
			deleted++
		}
	}
	return 200, map[string]any{"deleted": deleted, "failures": []any{}}
}
