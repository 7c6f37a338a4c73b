package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/config"
)

// TestLogFormats: programs read JSON wherever there is no terminal; /dev/null, too, is none.
func TestLogFormats(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only a test's
	for format, isRight := range map[string]func(string) bool{
		"auto": func(line string) bool { return json.Valid([]byte(line)) },
		"json": func(line string) bool { return json.Valid([]byte(line)) },
		"text": func(line string) bool { return strings.Contains(line, ` level=INFO msg="postroom runs" url=x`) },
	} {
		NewLogger(config.Log{Format: format}, file).Info("postroom runs", "url", "x")
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if last := lines[len(lines)-1]; !isRight(last) {
			t.Errorf("%s: %s", format, last)
		}
	}
}

// TestLogInWords: one line for a fact, and a text of a stranger stays in it.
func TestLogInWords(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(inWords(&out, slog.LevelInfo, true))
	log.Debug("unseen")
	log.Info("message sent", "message_id", "01M7", "response", "250 OK\x1b[31m\nforged", "monitor", "",
		"since", time.UnixMilli(1), "took", 1208836*time.Nanosecond)
	want := `^\d\d:\d\d:\d\d INF message sent message_id=01M7 response="250 OK\\nforged" took=1ms` + "\n$"
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("got %q", out.String())
	}
}
