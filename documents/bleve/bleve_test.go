package bleve_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/documents"
	"github.com/postroom/postroom/documents/bleve"
	"github.com/postroom/postroom/internal/testdocuments"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the index of a directory, and closes it at the end of the test.
func open(t *testing.T, dir string) *bleve.Store {
	t.Helper()
	s, err := bleve.Open(dir, bleve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	testdocuments.Conform(t, func(t *testing.T) documents.Store { return open(t, t.TempDir()) })
}
