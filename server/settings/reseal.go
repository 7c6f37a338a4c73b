package settings

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/postroom/postroom/internal/redisdb"
)

// Reseal seals the custom headers again, under the current secret, if they are sealed under an older one. It
// returns the number of settings that changed. It can be run at any time, while settings are changed, and
// again after a failure.
func (s *Settings) Reseal(ctx context.Context) (int, error) {
	for range 5 {
		stored, err := s.store.client.HGetAll(ctx, settingsKey()).Result()
		if err != nil {
			return 0, redisdb.Failed(err, "settings: read settings")
		}
		before, ok := stored[nameCustomHeaders]
		if !ok {
			return 0, nil
		}
		var url string
		if text, ok := stored[nameWebhooks]; ok {
			if err := json.Unmarshal([]byte(text), &url); err != nil {
				return 0, fmt.Errorf("settings: read %s: %w", nameWebhooks, err)
			}
		}
		after, err := s.resealed(before, url)
		if err != nil {
			return 0, fmt.Errorf("settings: seal %s again: %w", nameCustomHeaders, err)
		}
		if after == before {
			return 0, nil
		}
		done, err := replaceScript.Run(ctx, s.store.scripts, []string{settingsKey()},
			replaceArgs{nameCustomHeaders, before, after})
		if err != nil {
			return 0, redisdb.Failed(err, "settings: store settings")
		}
		if done {
			return 1, nil
		}
	}
	return 0, fmt.Errorf("settings: seal %s again: it keeps changing", nameCustomHeaders)
}

// resealed returns the stored headers, sealed under the current secret.
func (s *Settings) resealed(before, url string) (string, error) {
	var sealed string
	if err := json.Unmarshal([]byte(before), &sealed); err != nil {
		return "", err
	}
	renewed, needed, err := s.ring.Renew(sealed, headersPlace(url))
	if err != nil || !needed {
		return before, err
	}
	after, err := json.Marshal(renewed)
	return string(after), err
}
