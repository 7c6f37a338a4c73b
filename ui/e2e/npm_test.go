package e2e_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/postroom/postroom/app/apptest"
)

// npm returns the folder with the programs of tools/npm, in node_modules. tools/test-programs.sh installs
// them in the user's cache, once for each lock file.
func npm(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile("../../tools/npm/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "postroom", fmt.Sprintf("npm-%x", sha256.Sum256(lock))[:20])
	if _, err := os.Stat(filepath.Join(folder, "complete")); err != nil {
		t.Fatalf("the programs of tools/npm are not installed (run tools/test-programs.sh): %v", err)
	}
	return folder
}

// npmRun runs a program of tools/npm in a folder, with further variables of the environment.
func npmRun(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), apptest.Patience)
	defer cancel()
	if found := filepath.Join(npm(t), "node_modules", ".bin", program); program != "node" {
		program = found
	}
	run := exec.CommandContext(ctx, program, args...)
	run.Dir = dir
	run.Env = append(run.Environ(), env...)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// documentFile writes the OpenAPI document of a Postroom to a file.
func documentFile(t *testing.T, base string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, []byte(pageText(t, base+"/openapi.json")), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
