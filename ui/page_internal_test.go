package ui

import "testing"

// TestPagesAreParsed parses every page, as the first visit of each does.
func TestPagesAreParsed(t *testing.T) {
	static, err := loadFiles()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := loadPages(static)
	if err != nil {
		t.Fatal(err)
	}
	for name, parsed := range pages {
		if page, err := parsed(); err != nil || page.Lookup("page") == nil {
			t.Errorf("page %s: %v", name, err)
		}
	}
}
