package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/search"
)

// Limits of one request. Some clusters accept at most 10 MB.
const (
	batchSize  = 500
	batchBytes = 5 << 20
)

// Put implements search.Index.
func (s *Store) Put(ctx context.Context, docs []search.Document) error {
	besides, err := s.isBuilding(ctx)
	if err != nil {
		return err
	}
	targets := []string{s.alias}
	if besides {
		targets = append(targets, s.building())
	}
	for chunk := range slices.Chunk(docs, batchSize) {
		complete, err := search.Complete(chunk, func(unknown []search.Document) (
			map[string]search.Document, error) {
			return s.texts(ctx, unknown)
		})
		if err != nil {
			return err
		}
		if err := s.bulk(ctx, complete, targets...); err != nil {
			return err
		}
	}
	return nil
}

// isBuilding reports whether any process is building an index.
func (s *Store) isBuilding(ctx context.Context) (bool, error) {
	s.mu.Lock()
	besides, fresh := s.besides, time.Since(s.looked) < s.learn
	s.mu.Unlock()
	if fresh {
		return besides, nil
	}
	index, err := s.behind(ctx, s.building())
	if err != nil {
		return false, err
	}
	s.noteBuilding(index != "")
	return index != "", nil
}

func (s *Store) noteBuilding(besides bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.besides, s.looked = besides, time.Now()
}

// texts returns the texts that the index has of documents, by queue id.
func (s *Store) texts(ctx context.Context, docs []search.Document) (map[string]search.Document, error) {
	ids := make([]string, len(docs))
	for i, d := range docs {
		ids[i] = d.QueueID
	}
	var got struct {
		Docs []struct {
			ID     string `json:"_id"`
			Found  bool   `json:"found"`
			Source stored `json:"_source"`
		} `json:"docs"`
	}
	if err := s.do(ctx, http.MethodPost, "/"+s.alias+"/_mget?_source_includes=source.text,source.textKnown",
		map[string]any{"ids": ids}, &got); err != nil {
		return nil, err
	}
	texts := make(map[string]search.Document, len(ids))
	for _, d := range got.Docs {
		if d.Found {
			texts[d.ID] = d.Source.Source
		}
	}
	return texts, nil
}

// stored is a document in a response of the cluster.
type stored struct {
	Source search.Document `json:"source"`
}

// bulk writes documents to indexes.
func (s *Store) bulk(ctx context.Context, docs []search.Document, targets ...string) error {
	var lines bytes.Buffer
	for i := range docs {
		raw, err := json.Marshal(body(&docs[i]))
		if err != nil {
			return fmt.Errorf("write document %s: %w", docs[i].QueueID, err)
		}
		if lines.Len() > 0 && lines.Len()+len(targets)*len(raw) > batchBytes {
			if err := s.sendBulk(ctx, lines.Bytes()); err != nil {
				return err
			}
			lines.Reset()
		}
		for _, target := range targets {
			action, _ := json.Marshal(map[string]any{"index": map[string]any{ // plain values: can't fail
				"_index": target, "_id": docs[i].QueueID, "version": docs[i].Revision, "version_type": "external",
				"require_alias": true,
			}})
			lines.Write(action)
			lines.WriteByte('\n')
			lines.Write(raw)
			lines.WriteByte('\n')
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	return s.sendBulk(ctx, lines.Bytes())
}

// done is the result for one document.
type done struct {
	ID     string `json:"_id"`
	Index  string `json:"_index"`
	Status int    `json:"status"`
	Error  *struct {
		Type string `json:"type"`
	} `json:"error"`
}

func (s *Store) sendBulk(ctx context.Context, lines []byte) error {
	var answer struct {
		Errors bool              `json:"errors"`
		Items  []map[string]done `json:"items"`
	}
	wait, err := s.send(ctx, http.MethodPost, "/_bulk", "application/x-ndjson", lines, &answer)
	if err != nil || !answer.Errors {
		return err
	}
	for _, item := range answer.Items {
		for _, d := range item {
			if err := s.judge(d, wait); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge returns the error of one document. It is nil if the document is stored or can never be; any other
// error repeats the batch.
func (s *Store) judge(d done, wait time.Duration) error {
	switch {
	case d.Status < 300, d.Status == http.StatusConflict: // conflict: the stored one was read later
		return nil
	case d.Status == http.StatusNotFound && d.Index == s.building(): // swapped or dropped just now
		return nil
	case d.Status == http.StatusBadRequest:
		s.log.Error("document left out: the search cluster refused it "+
			"permanently", "message_id", d.ID, "error",
			reason(d))
		return nil
	}
	f := fault.New(fault.Unavailable, "SearchFailed", "The search cluster didn't accept all documents: %d %s",
		d.Status, reason(d))
	f.RetryAfter = wait
	return f
}

// reason returns the cluster's error without quoted content.
func reason(d done) string {
	if d.Error == nil {
		return ""
	}
	return d.Error.Type
}
