// Command gendocs writes what is generated from the settings: docs/configuration.md and
// deploy/config.example.yaml. Its argument is the root of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/postroom/postroom/config"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := write(root); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	for name, content := range generated(config.Keys()) {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generated is every generated file, by its path from the root.
func generated(keys []config.Key) map[string]string {
	return map[string]string{
		"docs/configuration.md":      markdown(keys),
		"deploy/config.example.yaml": example(keys),
	}
}
