package app

import (
	"log/slog"
	"os"

	"github.com/postroom/postroom/config"
)

// NewLogger returns a logger with the given settings that writes to w. Format auto means text on a terminal
// and JSON elsewhere.
func NewLogger(c config.Log, w *os.File) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
