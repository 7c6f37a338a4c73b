package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
)

// asPostroom names the variable that makes this program run as Postroom: the settings, as JSON.
const asPostroom = "CHAOS_POSTROOM_SETTINGS"

// postroomCommand starts this program as Postroom.
func postroomCommand(self string, settings []byte) *exec.Cmd {
	cmd := exec.Command(self) //nolint:gosec // this program
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "POSTROOM_") { // the settings of whoever runs chaos are not those of its processes
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, asPostroom+"="+string(settings))
	return cmd
}

// servePostroom is what a process that was started so does: it tells its address on standard output, and stops on SIGTERM.
func servePostroom(settings string) error {
	var set map[string]string
	if err := json.Unmarshal([]byte(settings), &set); err != nil {
		return err
	}
	loaded, err := config.Load(config.Sources{Flags: set})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: loaded.Log.Level}))
	a, err := app.New(ctx, &loaded.Config, app.Options{Logger: log})
	if err != nil {
		return err
	}
	fmt.Println("ready " + a.URL())
	return a.Run(ctx)
}
