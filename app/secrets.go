package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"

	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Resealed is the number of records of one kind that were sealed again.
type Resealed struct {
	What    string `json:"what"`
	Records int    `json:"records"`
}

// RotateSecrets seals again, under the current secret, everything in Redis that is sealed under the previous
// one. It returns the number of records of each kind. You can run it while processes with the same settings
// run, and repeat it after a failure. The error names records that can't be opened; the rest is done. Sealing
// email contents may take long: told is then called from time to time with the number examined and the number
// sealed.
func RotateSecrets(ctx context.Context, cfg *config.Config, logger *slog.Logger,
	told func(seen, done int)) ([]Resealed, error) {
	beside := *cfg
	if beside.Redis.URL == "" {
		url := redisdb.Running(ctx, beside.Data)
		if url == "" {
			return nil, errors.New("no embedded Redis runs in the data directory " + beside.Data +
				": start Postroom first, or set redis.url or data to the running Postroom's")
		}
		beside.Redis.URL = config.Secret(url)
	}
	a := newApp(&beside, "dev", logger)
	for _, build := range []func(context.Context) error{a.openRedis, a.readSecrets, a.buildStores,
		a.buildDelivery, a.buildWebhooks} {
		if err := build(ctx); err != nil {
			return nil, errors.Join(err, a.life.close())
		}
	}
	done, err := a.rotateSecrets(ctx, told)
	return done, errors.Join(err, a.life.close())
}

func (a *App) rotateSecrets(ctx context.Context, told func(seen, done int)) ([]Resealed, error) {
	mail := func(ctx context.Context) (int, error) { return a.outbox.Operations.Reseal(ctx, told) }
	var done []Resealed
	var failed error
	for _, store := range []struct {
		what   string
		reseal func(context.Context) (int, error)
	}{
		{"accounts", a.accounts.Reseal},
		{"gateways", a.gateways.Reseal},
		{"domain keys", a.keys.Reseal},
		{"settings", a.settings.Reseal},
		{"webhook endpoints", a.webhooks.Reseal},
		{"access tokens of relays", a.oauth.Reseal},
		{"access tokens", a.access.Reseal},
		{"people", a.people.Reseal},
		{"key of erased addresses", a.suppressions.Reseal},
		{"contents of mail", mail},
		{"audit log", a.audit.Reseal},
	} {
		n, err := store.reseal(ctx)
		done = append(done, Resealed{store.what, n})
		failed = errors.Join(failed, err)
	}
	return done, failed
}

// readSecrets is openSecrets for commands: it creates nothing.
func (a *App) readSecrets(context.Context) error {
	secret, err := config.PresentSecret(a.cfg)
	if err != nil {
		return err
	}
	a.creds = &config.Credentials{Secret: secret, Token: a.cfg.Token}
	a.ring, err = newRing(a.cfg, secret)
	return err
}

// newRing returns the ring of the current and the previous secret.
func newRing(cfg *config.Config, secret config.Secret) (*seal.Ring, error) {
	var older [][]byte
	if cfg.SecretPrevious != "" {
		older = append(older, []byte(cfg.SecretPrevious.Reveal()))
	}
	return seal.New([]byte(secret.Reveal()), older...)
}

// SigningSecret returns the secret that signs webhooks without their own secret. Receivers need it.
func SigningSecret(cfg *config.Config) (string, error) {
	if cfg.Webhooks.SigningSecret != "" {
		return cfg.Webhooks.SigningSecret.Reveal(), nil
	}
	secret, err := config.PresentSecret(cfg)
	if err != nil {
		return "", err
	}
	ring, err := newRing(cfg, secret)
	if err != nil {
		return "", err
	}
	all, err := signingSecrets(cfg, ring)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// signingSecrets returns the secrets that sign webhooks without their own secret, the current one first. If
// none is set they are derived from the instance secret. Receivers must not get that one: it opens every
// password.
func signingSecrets(cfg *config.Config, ring *seal.Ring) ([]string, error) {
	if cfg.Webhooks.SigningSecret != "" {
		return []string{cfg.Webhooks.SigningSecret.Reveal()}, nil
	}
	keys, err := ring.DeriveAll("webhook signatures")
	if err != nil {
		return nil, fmt.Errorf("the signing secret of webhooks: %w", err)
	}
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = hex.EncodeToString(key)
	}
	return all, nil
}
