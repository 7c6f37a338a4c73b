package bleve_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/bleve"
	"github.com/postroom/postroom/outbox/search/searchtest"
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
	searchtest.Conform(t, func(t *testing.T) search.Store { return open(t, t.TempDir()) })
}
