package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/config"
)

func bootstrap(t *testing.T, c config.Config) *config.Credentials {
	t.Helper()
	got, err := config.Bootstrap(t.Context(), &c)
	if err != nil {
		t.Fatalf("Bootstrap: %v", err)
	}
	return got
}

func TestFirstStartMakesCredentials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	first := bootstrap(t, config.Config{Data: dir})
	if !first.FirstStart || len(first.Secret.Reveal()) != 64 || len(first.Token.Reveal()) != 64 ||
		first.Secret == first.Token {
		t.Errorf("first start gave %+v", first)
	}
	for _, file := range []string{first.SecretFile, first.TokenFile} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", file, mode)
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("data directory has mode %o, want 700", mode)
	}

	second := bootstrap(t, config.Config{Data: dir})
	first.FirstStart = false
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("second start differs: %s", diff)
	}
}

func TestSettingsComeBeforeFiles(t *testing.T) {
	dir := t.TempDir()
	secret, token := config.Secret(strings.Repeat("s", 32)), config.Secret(strings.Repeat("t", 16))
	got := bootstrap(t, config.Config{Data: dir, Secret: secret, Token: token})
	if diff := cmp.Diff(&config.Credentials{Secret: secret, Token: token}, got); diff != "" {
		t.Error(diff)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("data directory holds %v (%v), want nothing", entries, err)
	}
}

func TestProcessesThatStartAtOnceAgree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	const processes = 8
	got := make([]*config.Credentials, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			c, err := config.Bootstrap(t.Context(), &config.Config{Data: dir})
			if err != nil {
				t.Errorf("process %d: %v", i, err)
				return
			}
			got[i] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, c := range got[1:] {
		if c.Secret != got[0].Secret || c.Token != got[0].Token {
			t.Fatal("two processes hold different credentials")
		}
	}
}

func TestDamagedSecretIsNeverReplaced(t *testing.T) {
	for _, content := range []string{"", "cut off\n"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "secret")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Bootstrap(t.Context(), &config.Config{Data: dir})
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("Bootstrap with the secret %q: %v", content, err)
		}
		if after, _ := os.ReadFile(file); string(after) != content {
			t.Errorf("secret file was changed to %q", after)
		}
	}
}

func TestReadableSecretIsWarnedAbout(t *testing.T) {
	dir := t.TempDir()
	made := bootstrap(t, config.Config{Data: dir})
	if err := os.Chmod(made.SecretFile, 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{made.SecretFile + " can be read by other users of this machine; run: chmod 600 " +
		made.SecretFile}
	if diff := cmp.Diff(want, bootstrap(t, config.Config{Data: dir}).Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestStuckLockEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	lock := flock.New(filepath.Join(dir, "bootstrap.lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := config.Bootstrap(ctx, &config.Config{Data: dir}); err == nil ||
		!strings.Contains(err.Error(), "bootstrap.lock") {
		t.Errorf("Bootstrap beside a held lock: %v", err)
	}
}

func TestPresentSecretIsNeverMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if got, err := config.PresentSecret(&config.Config{Data: dir}); err == nil || got != "" {
		t.Errorf("where there is none: %d bytes, %v", len(got), err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
	want := bootstrap(t, config.Config{Data: dir}).Secret
	if got, err := config.PresentSecret(&config.Config{Data: dir}); err != nil || got != want {
		t.Errorf("from its file: the right one %v, %v", got == want, err)
	}
	set := config.Secret(strings.Repeat("s", 32))
	if got, err := config.PresentSecret(&config.Config{Data: dir, Secret: set}); err != nil || got != set {
		t.Errorf("from the settings: the right one %v, %v", got == set, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("cut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.PresentSecret(&config.Config{Data: dir}); err == nil {
		t.Error("a damaged one was taken")
	}
}
