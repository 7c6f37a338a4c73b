package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestOpenAPILinters runs the usual linters: no error, and no warning.
func TestOpenAPILinters(t *testing.T) {
	t.Parallel()
	file := documentFile(t, apptest.Run(t, map[string]string{"redis.url": testredis.URL(t)}).URL())
	folder := npm(t)
	env := []string{"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true"}
	out := npmRun(t, folder, env, "redocly", "lint", "--config", "redocly.yaml", file)
	if strings.Contains(out, "warning") {
		t.Errorf("redocly warns:\n%s", out)
	}
	out = npmRun(t, folder, nil, "spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint",
		file)
	if !strings.Contains(out, "No results") {
		t.Errorf("spectral says:\n%s", out)
	}
}

// startShop starts a Postroom whose default account has a relay.
func startShop(t *testing.T) *app.App {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	return apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
}

// TestTypeScriptClient makes a client of the OpenAPI document, compiles testdata/client/smoke.ts with it, and
// runs that against a server.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	a := startShop(t)
	dir, modules := t.TempDir(), filepath.Join(npm(t), "node_modules")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	smoke, err := os.ReadFile("testdata/client/smoke.ts")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"smoke.ts": smoke, "package.json": []byte(`{"type":"module"}`)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	npmRun(t, dir, nil, "openapi-typescript", documentFile(t, a.URL()), "-o", "schema.ts")
	npmRun(t, dir, nil, "tsc", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext",
		"--types", "node", "schema.ts", "smoke.ts")
	out := npmRun(t, dir, []string{"URL=" + a.URL(), "TOKEN=" + a.Token()}, "node", "smoke.js")
	if strings.TrimSpace(out) != "ok" {
		t.Errorf("smoke.ts says %s", out)
	}
}

// TestGoClient makes a client of the OpenAPI document with oapi-codegen, and runs the program of tools/client
// with it against a server.
func TestGoClient(t *testing.T) {
	t.Parallel()
	a := startShop(t)
	tools, err := filepath.Abs("../../tools")
	if err != nil {
		t.Fatal(err)
	}
	goRun := func(args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 3*apptest.Patience)
		defer cancel()
		run := exec.CommandContext(ctx, "go", args...)
		run.Dir = tools
		run.Env = append(run.Environ(), "URL="+a.URL(), "TOKEN="+a.Token())
		said := new(strings.Builder) // the go command tells there what it downloads
		run.Stderr = said
		out, err := run.Output()
		if err != nil {
			t.Fatalf("go %q: %v\n%s\n%s", args, err, out, said)
		}
		return string(out)
	}
	// The client is no file of tools: the compiler sees one there.
	client, overlay := filepath.Join(t.TempDir(), "client.go"), filepath.Join(t.TempDir(), "overlay.json")
	files, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(tools, "client", "generated.go"): client}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, files, 0o644); err != nil {
		t.Fatal(err)
	}
	goRun("tool", "oapi-codegen", "-config", "client/oapi-codegen.yaml", "-o", client, documentFile(t, a.URL()))
	if out := goRun("run", "-tags", "smoke", "-overlay", overlay, "./client"); strings.TrimSpace(out) != "ok" {
		t.Errorf("tools/client says %s", out)
	}
}

// TestPythonClient makes a client of the document of OpenAPI 3.0 with openapi-generator, and runs
// testdata/client/smoke.py with it against a server.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	a := startShop(t)
	document, client := filepath.Join(t.TempDir(), "openapi.json"), t.TempDir()
	if err := os.WriteFile(document, []byte(pageText(t, a.URL()+"/openapi-3.0.json")), 0o644); err != nil {
		t.Fatal(err)
	}
	jar := filepath.Join(npm(t), "node_modules", "@openapitools", "openapi-generator-cli", "bin",
		"openapi-generator.jar")
	ctx, cancel := context.WithTimeout(t.Context(), apptest.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "java", "-jar", jar, "generate", "-g", "python", "-i", document, "-o",
		client, "--package-name", "postroom_client").CombinedOutput()
	if err != nil {
		t.Fatalf("openapi-generator: %v\n%s", err, out)
	}
	python := "python3" // Debian's packages are for its own, which need not be the first
	if exec.CommandContext(ctx, python, "-c", "import dateutil, six, urllib3, certifi").Run() != nil {
		python = "/usr/bin/python3"
	}
	smoke := exec.CommandContext(ctx, python, "testdata/client/smoke.py")
	smoke.Env = append(smoke.Environ(), "PYTHONPATH="+client, "PYTHONDONTWRITEBYTECODE=1", "URL="+a.URL(),
		"TOKEN="+a.Token())
	if out, err = smoke.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("smoke.py: %v\n%s", err, out)
	}
}
