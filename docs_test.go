package postroom

import (
	"bytes"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are the documents whose links and file names are checked.
func pages(t *testing.T) []string {
	t.Helper()
	files := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %v, %d pages", pattern, err, len(more))
		}
		files = append(files, more...)
	}
	return files
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// codeFile is a file of the repository as pages name it: a path with a folder, in backticks.
	codeFile = regexp.MustCompile("`((?:[a-z]+/)+[a-zA-Z0-9_.-]+\\.(?:go|lua|tsv|md|yml|yaml|sh|txt))`")
	// codeFolder is a package or folder as pages name it.
	codeFolder = regexp.MustCompile(
		"`((?:internal|examples|deploy|outbox|smtpsend|cmd|config|server|webhooks)(?:/[a-z0-9-]+)*)/?`")
)

// TestLinksLeadSomewhere follows every link of the documentation that stays in the repository, to the heading
// it names.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, file := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(prose(t, file), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which is not there", file, found[1])
				continue
			}
			if anchor != "" && !hasHeading(t, path, anchor) {
				t.Errorf("%s links to %s, where there is no such heading", file, found[1])
			}
		}
	}
}

// TestPicturesAreSmall: each picture is on a page, and no burden on the program that embeds it.
func TestPicturesAreSmall(t *testing.T) {
	var text strings.Builder
	for _, file := range pages(t) {
		text.WriteString(prose(t, file))
	}
	files, err := filepath.Glob("docs/pictures/*.png")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d pictures", err, len(files))
	}
	total := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		total += len(raw)
		size, err := png.DecodeConfig(bytes.NewReader(raw))
		if err != nil || len(raw) > 80_000 || size.Width < 300 || size.Width > 1400 || size.Height > 1600 {
			t.Errorf("%s: %d bytes, %d by %d pixels, %v", file, len(raw), size.Width, size.Height, err)
		}
		if !strings.Contains(text.String(), "pictures/"+filepath.Base(file)+")") {
			t.Errorf("%s is on no page", file)
		}
	}
	if total > 800_000 {
		t.Errorf("the pictures have %d bytes", total)
	}
}

// conflict is a line that git writes where it could not merge.
var conflict = regexp.MustCompile(`(?m)^(<{7}|>{7}|\|{7}) `)

// TestNoConflictMarkers: no tracked file has lines of a merge that nobody finished.
func TestNoConflictMarkers(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("the files of git can't be listed: %v", err) // an archive of the sources has none
	}
	for _, file := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a link to nowhere, or a file that is deleted and not committed yet
		}
		if at := conflict.FindIndex(text); at != nil {
			t.Errorf("%s:%d: a conflict marker", file, 1+bytes.Count(text[:at[0]], []byte("\n")))
		}
	}
}

// TestNamedFilesExist finds files and folders that the documentation names and that were moved or removed.
func TestNamedFilesExist(t *testing.T) {
	for _, file := range pages(t) {
		text := prose(t, file)
		for _, found := range append(codeFile.FindAllStringSubmatch(text, -1),
			codeFolder.FindAllStringSubmatch(text, -1)...) {
			if _, err := os.Stat(found[1]); err != nil {
				t.Errorf("%s names %s, which is not there", file, found[1])
			}
		}
	}
}

// prose is a page without its blocks of code.
func prose(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

// hasHeading looks for the heading an anchor means: in lower case, with hyphens for blanks and without
// punctuation.
func hasHeading(t *testing.T, file, anchor string) bool {
	t.Helper()
	for _, h := range heading.FindAllStringSubmatch(prose(t, file), -1) {
		var b strings.Builder
		for _, c := range strings.ToLower(h[1]) {
			switch {
			case c == ' ' || c == '-':
				b.WriteRune('-')
			case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
				b.WriteRune(c)
			}
		}
		if b.String() == anchor {
			return true
		}
	}
	return false
}
