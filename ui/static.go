package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
)

//go:embed static
var staticFiles embed.FS

// files are the style sheet, the script and the icon of the pages.
type files struct {
	content map[string][]byte
	version map[string]string
}

func loadFiles() (*files, error) {
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		return nil, err
	}
	f := &files{content: map[string][]byte{}, version: map[string]string{}}
	for _, e := range entries {
		raw, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(raw)
		f.content[e.Name()], f.version[e.Name()] = raw, hex.EncodeToString(sum[:6])
	}
	return f, nil
}

// url returns the URL of a file. It changes with the file, so that browsers may cache it.
func (f *files) url(name string) (string, error) {
	version, ok := f.version[name]
	if !ok {
		return "", fmt.Errorf("no file %s", name)
	}
	return "/static/" + name + "?v=" + version, nil
}

// types are the media types of the files. The system's table may differ.
var types = map[string]string{".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

func (u *UI) file(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	raw, ok := u.static.content[name]
	if !ok {
		return noPage(w, r)
	}
	w.Header().Set("Content-Type", mime.FormatMediaType(types[path.Ext(name)], map[string]string{
		"charset": "utf-8"}))
	if r.URL.Query().Get("v") == u.static.version[name] {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(raw)
	return nil
}
