package ui

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestButtonsThatStopOrDeleteAsk: they are behind a question that says what follows, on every page.
func TestButtonsThatStopOrDeleteAsk(t *testing.T) {
	files, err := fs.Glob(os.DirFS("templates"), "*.html")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	form := regexp.MustCompile(`action="[^"]*/(pause|off|delete|remove)"`)
	// goes on at once; needs a password
	apart := map[string]string{"campaign.html": "pause", "me.html": "remove"}
	found := 0
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("templates", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range form.FindAllSubmatchIndex(text, -1) {
			verb := string(text[at[2]:at[3]])
			before := text[:at[0]]
			if found++; apart[name] == verb {
				continue
			}
			if bytes.LastIndex(before, []byte(`<details class="ask`)) <= bytes.LastIndex(before,
				[]byte("</details>")) {
				t.Errorf("%s: %s happens at one click", name, text[at[0]:at[1]])
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d such buttons were found", found)
	}
}
