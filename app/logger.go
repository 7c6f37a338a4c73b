package app

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"github.com/postroom/postroom/config"
)

// NewLogger returns a logger with the given settings that writes to w. Format auto means words on a terminal
// and JSON elsewhere.
func NewLogger(c config.Log, w *os.File) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.Level}
	switch {
	case c.Format == "text":
		return slog.New(slog.NewTextHandler(w, o))
	case c.Format == "auto" && term.IsTerminal(int(w.Fd())):
		return slog.New(inWords(w, c.Level, os.Getenv("NO_COLOR") != ""))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// inWords returns a handler for people: the time of day, the level, the message, and its attributes. Empty
// ones, and times before Postroom was written, are left out; durations are rounded.
func inWords(w io.Writer, level slog.Level, plain bool) slog.Handler {
	shown := func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Resolve(); {
		case v.Kind() == slog.KindString && v.String() == "",
			v.Kind() == slog.KindTime && v.Time().Year() < 2000:
			return slog.Attr{}
		case v.Kind() == slog.KindDuration:
			a.Value = slog.StringValue(max(v.Duration().Round(time.Millisecond), time.Millisecond).String())
		}
		return a
	}
	return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: plain,
		ReplaceAttr: shown})
}
