package bleve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
)

// batchKey is where the engine keeps the number of the last batch. Where it can't read its newest state, it silently goes on with an older
// one, or with none: the number tells.
var batchKey = []byte("batch")

var (
	errNeverBegun = errors.New("there is no search index")
	errFellBack   = errors.New("the newest state of the search index can't be read")
)

// write writes a batch, numbered.
func (e *engine) write(batch *index.Batch) error {
	batch.SetInternal(batchKey, strconv.AppendUint(nil, e.batches+1, 10))
	if err := e.scorch.Batch(batch); err != nil {
		return fmt.Errorf("write to search index %s: %w", e.path, err)
	}
	e.batches++
	return nil
}

// lastBatch reads the number of the last batch of an index that is not open. The engine panics on some damaged files.
func lastBatch(path string) (number uint64, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("the register of search index %s is damaged: %v", path, x)
		}
	}()
	if _, err := os.Stat(filepath.Join(path, "root.bolt")); err != nil {
		return 0, err
	}
	states, err := scorch.RollbackPoints(path)
	if err != nil {
		return 0, err
	}
	if len(states) == 0 {
		return 0, errNeverBegun
	}
	return strconv.ParseUint(string(states[0].GetInternal(batchKey)), 10, 64)
}

// resume goes on after the last batch, if that is what was opened.
func (e *engine) resume(last uint64) error {
	snapshot, err := e.snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	number, err := snapshot.GetInternal(batchKey)
	if err != nil {
		return err
	}
	if string(number) != strconv.FormatUint(last, 10) {
		return fmt.Errorf("%w: batch %q instead of %d", errFellBack, number, last)
	}
	for _, segment := range snapshot.Segments() {
		if segment.FullSize() == 0 { // the engine writes none
			return fmt.Errorf("segment %d of the search index is damaged", segment.Id())
		}
	}
	e.batches = last
	return nil
}
