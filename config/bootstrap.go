package config

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

// Credentials are the secret and the admin token of this process, and their files.
type Credentials struct {
	Secret     Secret
	Token      Secret
	SecretFile string // empty when the settings give the secret
	TokenFile  string // empty when the settings give the token
	FirstStart bool   // one of the two files was just created: show the operator where they are
	Warnings   []string
}

// Bootstrap returns the secret and the admin token, from the settings or else from the data
// directory. At the first start it creates them there. Two processes that start concurrently agree on what
// the first of them created. A file without a valid secret is an error and is never replaced: values sealed
// under the lost secret could not be opened again.
func Bootstrap(ctx context.Context, c *Config) (*Credentials, error) {
	out := &Credentials{Secret: c.Secret, Token: c.Token}
	if c.Secret == "" {
		out.SecretFile = filepath.Join(c.Data, "secret")
	}
	if c.Token == "" {
		out.TokenFile = filepath.Join(c.Data, "token")
	}
	if err := out.keep(ctx, &out.Secret, out.SecretFile, secretRule); err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	if err := out.keep(ctx, &out.Token, out.TokenFile, tokenRule); err != nil {
		return nil, fmt.Errorf("admin token: %w", err)
	}
	return out, nil
}

// PresentSecret returns the current secret, for commands next to a running Postroom. Unlike Bootstrap it
// never creates one: a new secret would open nothing.
func PresentSecret(c *Config) (Secret, error) {
	if c.Secret != "" {
		return c.Secret, nil
	}
	var s Secret
	file := filepath.Join(c.Data, "secret")
	if err := new(Credentials).read(&s, file, secretRule); err != nil {
		return "", fmt.Errorf("secret: %w; run this with the settings of the running Postroom: secret or data", err)
	}
	return s, nil
}

// keep reads the file into s, or creates it. The file name is empty if there is nothing to keep.
func (c *Credentials) keep(ctx context.Context, s *Secret, file, rule string) error {
	if file == "" {
		return nil
	}
	err := c.read(s, file, rule)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the data directory (setting data): %w", err)
	}
	return whileLocked(ctx, filepath.Join(filepath.Dir(file), "bootstrap.lock"), func() error {
		if err := c.read(s, file, rule); !errors.Is(err, fs.ErrNotExist) {
			return err // another process was first
		}
		random := make([]byte, 32)
		_, _ = rand.Read(random) // never fails: crypto/rand ends the program instead
		*s = Secret(hex.EncodeToString(random))
		c.FirstStart = true
		return renameio.WriteFile(file, []byte(s.Reveal()+"\n"), 0o600)
	})
}

func (c *Credentials) read(s *Secret, file, rule string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := trimNewline(string(content))
	if _, fault := checked(rule, text); fault != "" {
		return fmt.Errorf("the content of %s %s; or restore the file from a backup", file, fault)
	}
	*s = Secret(text)
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		c.Warnings = append(c.Warnings,
			fmt.Sprintf("%s can be read by other users of this machine; run: chmod 600 %s", file, file))
	}
	return nil
}

// whileLocked runs fn while this process holds the lock file.
func whileLocked(ctx context.Context, path string, fn func() error) error {
	lock := flock.New(path, flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return errors.Join(fn(), lock.Unlock())
}
