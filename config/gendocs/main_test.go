package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/config"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	for name, want := range generated(config.Keys()) {
		got, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is stale, run go generate ./config:\n%s", name, diff)
		}
	}
}

// TestExampleHoldsTheDefaults uncomments the whole example: it must be the defaults, from the file.
func TestExampleHoldsTheDefaults(t *testing.T) {
	var text strings.Builder
	for _, line := range strings.Split(example(config.Keys()), "\n") {
		text.WriteString(strings.TrimPrefix(line, "#") + "\n")
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(config.Sources{File: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	want, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Config, got.Config); diff != "" {
		t.Error(diff)
	}
	for i, r := range got.Rows() {
		if r.Source == "default" && config.Keys()[i].Default != "" {
			t.Errorf("%s is missing in the example", r.Key)
		}
	}
}

func TestEverySettingIsDescribed(t *testing.T) {
	for _, k := range config.Keys() {
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s: doc %q is no sentence", k.Path, k.Doc)
		}
		if (k.Default == "") != (k.Empty != "") {
			t.Errorf("%s needs either a default or the meaning of its empty value", k.Path)
		}
	}
}
