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

// batchKey is the key of the last batch's number. If the engine cannot read its newest state, it silently
// opens an older or empty one; the number detects this.
var batchKey = []byte("batch")

var (
	errNeverBegun = errors.New("there is no search index")
	errFellBack   = errors.New("the newest state of the search index can't be read")
)

// write numbers and writes a batch.
func (e *engine) write(batch *index.Batch) error {
	batch.SetInternal(batchKey, strconv.AppendUint(nil, e.batches+1, 10))
	if err := e.scorch.Batch(batch); err != nil {
		return fmt.Errorf("write to search index %s: %w", e.path, err)
	}
	e.batches++
	return nil
}

// lastBatch reads the number of the last batch of a closed index. The engine panics on some damaged files.
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

// resume checks that the last batch was opened, and continues its numbers.
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
