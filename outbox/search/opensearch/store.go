package opensearch

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	client "github.com/opensearch-project/opensearch-go/v4"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

// Options are the settings of a Store. URL is required.
type Options struct {
	URL    string        // URLs of nodes, with user and password if needed; comma-separated
	Index  string        // the alias; defaults to postroom
	Learn  time.Duration // maximum time until each process knows that an index is being built; defaults to 2 s
	Logger *slog.Logger  // nil if nothing is logged
}

// Store is an index in a cluster. It implements search.Store.
type Store struct {
	client *client.Client
	stop   context.CancelFunc
	http   *http.Client // the client's
	alias  string
	learn  time.Duration
	log    *slog.Logger

	mu      sync.Mutex
	looked  time.Time // when besides was set
	besides bool      // an index is being built
}

// Open returns a store. It does no I/O: [Store.Ready] creates the index.
func Open(o Options) (*Store, error) {
	if o.URL == "" {
		return nil, errors.New("open the search index: no address")
	}
	o.Index = cmp.Or(o.Index, "postroom")
	o.Learn = cmp.Or(o.Learn, 2*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background()) // for the client's background work, until Close
	over := dialing.New(dialing.Options{AllowPrivate: true, Logger: o.Logger}).Client(dialing.HTTP{
		PerHost: 16, Environment: true}) // the operator named the cluster
	c, err := newClient(ctx, o.URL, over.Transport)
	if err != nil {
		stop()
		return nil, fmt.Errorf("open the search index: %w", err)
	}
	return &Store{client: c, stop: stop, http: over, alias: o.Index, learn: o.Learn, log: o.Logger}, nil
}

// Close stops the client's background work, and closes its connections.
func (s *Store) Close() error {
	s.stop()
	s.http.CloseIdleConnections()
	return nil
}

// building returns the alias of the index that is being built.
func (s *Store) building() string { return s.alias + ".building" }

// own returns the pattern of this alias's indexes. Aliases contain no dots, so it matches no others.
func (s *Store) own() string { return s.alias + ".v*" }

// template returns the index template, which allows no other fields.
func (s *Store) template() map[string]any {
	words := map[string]any{"type": "text", "analyzer": "words", "norms": false}
	value := map[string]any{"type": "keyword", "doc_values": false}
	counted := map[string]any{"type": "keyword"}
	fields := map[string]any{
		fieldSource: map[string]any{"type": "object", "enabled": false}, fieldAt: map[string]any{"type": "long"},
		fieldOrder:            counted,
		string(query.Subject): words, string(query.Text): words,
	}
	for _, field := range search.ValueFields() {
		fields[string(field)] = value
	}
	for _, field := range search.FacetFields() {
		fields[string(field)] = counted
	}
	return map[string]any{
		"index_patterns": []string{s.own()},
		"template": map[string]any{
			"settings": map[string]any{
				"index": map[string]any{
					"number_of_shards": 1, "auto_expand_replicas": "0-1", "refresh_interval": "1s",
					"max_result_window": search.MaxReach + 1,
				},
				"analysis": map[string]any{
					"analyzer": map[string]any{"words": map[string]any{"type": "custom", "tokenizer": "whitespace"}}},
			},
			"mappings": map[string]any{
				"dynamic": "strict", "_source": map[string]any{"includes": []string{fieldSource, fieldSource + ".*"}},
				"properties": fields,
			},
		},
	}
}

// Ready implements search.Store. The name is in the mapping and is passed on when an index replaces
// another.
func (s *Store) Ready(ctx context.Context) (string, error) {
	index, err := s.behind(ctx, s.alias)
	if err != nil {
		return "", err
	}
	if index != "" {
		return s.nameOf(ctx, index)
	}
	if err := s.do(ctx, http.MethodPut, "/_index_template/"+s.alias, s.template(), nil); err != nil {
		return "", err
	}
	name := rand.Text()
	if _, err := s.create(ctx, name, s.alias); err != nil {
		return "", err
	}
	// If two processes do this together, one wins: an alias of two indexes cannot be written to.
	return name, s.settle(ctx)
}

// create creates an index with a name and an alias.
func (s *Store) create(ctx context.Context, name, alias string) (string, error) {
	index := s.alias + ".v" + time.Now().UTC().Format("20060102150405.000000000")
	err := s.do(ctx, http.MethodPut, "/"+index, map[string]any{
		"aliases":  map[string]any{alias: map[string]any{}},
		"mappings": map[string]any{"_meta": map[string]any{"name": name}},
	}, nil)
	if err != nil {
		return "", fmt.Errorf("make search index %s: %w", index, err)
	}
	return index, nil
}

// settle leaves the alias to one index if two were created.
func (s *Store) settle(ctx context.Context) error {
	all, err := s.indexes(ctx, s.alias)
	if err != nil {
		return err
	}
	return s.remove(ctx, all[min(1, len(all)):]...)
}

// indexes returns the indexes of an alias, oldest first.
func (s *Store) indexes(ctx context.Context, alias string) ([]string, error) {
	var found map[string]any
	err := s.do(ctx, http.MethodGet, "/_alias/"+alias, nil, &found)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	return sortedKeys(found), nil
}

// behind returns the index of an alias, or "".
func (s *Store) behind(ctx context.Context, alias string) (string, error) {
	all, err := s.indexes(ctx, alias)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0], nil
}

// nameOf returns the name of an index.
func (s *Store) nameOf(ctx context.Context, index string) (string, error) {
	var found map[string]struct {
		Mappings struct {
			Meta struct {
				Name string `json:"name"`
			} `json:"_meta"`
		} `json:"mappings"`
	}
	if err := s.do(ctx, http.MethodGet, "/"+index+"/_mapping", nil, &found); err != nil {
		return "", err
	}
	name := found[index].Mappings.Meta.Name
	if name == "" || !strings.HasPrefix(index, s.alias+".v") {
		return "", fmt.Errorf("the alias %s belongs to %s, which isn't a search index of Postroom; choose another name (documents.index)", s.alias, index)
	}
	return name, nil
}
