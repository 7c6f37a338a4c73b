package bleve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	json "github.com/go-json-experiment/json/v1" // half of the time of encoding/json

	"github.com/postroom/postroom/outbox/search"
)

// engine is one index on disk.
type engine struct {
	path    string
	scorch  *scorch.Scorch
	queue   *index.AnalysisQueue
	columns *columns
	batches uint64 // number of batches ever written
}

// analysts is the number of goroutines that split texts into words. One handles thousands of documents a
// second and leaves the CPU to sending.
const analysts = 1

// batchSize is the number of documents per write.
const batchSize = 500

// openEngine opens or creates the index in a directory. The engine panics on some damaged files.
func openEngine(path string) (e *engine, err error) {
	e = &engine{path: path, queue: index.NewAnalysisQueue(analysts), columns: newColumns()}
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("the engine panicked: %v", x)
		}
		if err != nil {
			e.queue.Close()
			e, err = nil, fmt.Errorf("open search index %s: %w", path, err)
		}
	}()
	opened, err := scorch.NewScorch(scorch.Name, map[string]any{"path": path, "bolt_timeout": "2s"}, e.queue)
	if err != nil {
		return e, err
	}
	e.scorch = opened.(*scorch.Scorch) // NewScorch returns no other type
	return e, e.scorch.Open()
}

// close closes the engine. Its documents are on disk already.
func (e *engine) close() error {
	err := e.scorch.Close()
	e.queue.Close()
	return err
}

// snapshot returns the current index. The caller closes it.
func (e *engine) snapshot() (*scorch.IndexSnapshot, error) {
	reader, err := e.scorch.Reader()
	if err != nil {
		return nil, err
	}
	s, ok := reader.(*scorch.IndexSnapshot)
	if !ok || s == nil {
		return nil, errors.New("the search index is closed")
	}
	return s, nil
}

// put writes documents and waits until they are on disk. It skips documents that the index has with a higher
// revision.
func (e *engine) put(docs []search.Document) error {
	stored, err := e.stored(docs)
	if err != nil {
		return err
	}
	batch := index.NewBatch()
	for i := range docs {
		if old, ok := stored[docs[i].QueueID]; ok && old.Revision > docs[i].Revision {
			continue
		}
		d, err := engineDocument(&docs[i])
		if err != nil {
			return err
		}
		stored[docs[i].QueueID] = docs[i] // the batch may contain it again
		batch.Update(d)
	}
	if len(batch.IndexOps) == 0 {
		return nil
	}
	return e.write(batch)
}

// remove deletes documents.
func (e *engine) remove(ids []string) error {
	batch := index.NewBatch()
	for _, id := range ids {
		batch.Delete(id)
	}
	return e.write(batch)
}

// stored returns the documents that the index has, by queue id.
func (e *engine) stored(docs []search.Document) (map[string]search.Document, error) {
	s, err := e.snapshot()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	ids := make([]string, len(docs))
	for i := range docs {
		ids[i] = docs[i].QueueID
	}
	found := make(map[string]search.Document, len(docs))
	for _, segment := range s.Segments() {
		numbers, err := segment.DocNumbers(ids)
		if err != nil {
			return nil, err
		}
		for it := numbers.Iterator(); it.HasNext(); {
			d, err := source(segment, uint64(it.Next()))
			if err != nil {
				return nil, err
			}
			found[d.QueueID] = d
		}
	}
	return found, nil
}

// source reads a stored document.
func source(segment *scorch.SegmentSnapshot, number uint64) (search.Document, error) {
	var d search.Document
	err := errors.New("the search index is damaged: a document is missing; rebuild it")
	visitErr := segment.VisitDocument(number, func(name string, _ byte, value []byte, _ []uint64) bool {
		if name != fieldSource {
			return true
		}
		if err = json.Unmarshal(value, &d); err != nil {
			err = fmt.Errorf("the search index is damaged, rebuild it: %w", err)
		}
		return false
	})
	return d, errors.Join(visitErr, err)
}

// size returns the number of documents and of bytes on disk.
func (e *engine) size() (search.Size, error) {
	s, err := e.snapshot()
	if err != nil {
		return search.Size{}, err
	}
	defer s.Close()
	count, err := s.DocCount()
	if err != nil {
		return search.Size{}, err
	}
	size := search.Size{Documents: int(count)}
	files, err := os.ReadDir(e.path)
	if err != nil {
		return search.Size{}, err
	}
	for _, f := range files {
		// merged segments can disappear at any time
		if info, err := os.Stat(filepath.Join(e.path, f.Name())); err == nil {
			size.Bytes += info.Size()
		}
	}
	return size, nil
}
