package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
)

// asked is the environment variable that makes a program run Postroom. It holds the settings, as JSON.
const asked = "BENCH_POSTROOM_SETTINGS"

// Serve runs Postroom until SIGTERM and then ends the process, if [Command] started it. Otherwise it returns.
// Call it first in main.
func Serve() {
	settings, ok := os.LookupEnv(asked)
	if !ok {
		return
	}
	if err := serve(settings); err != nil {
		fmt.Fprintln(os.Stderr, "postroom:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(settings string) error {
	var set map[string]string
	if err := json.Unmarshal([]byte(settings), &set); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a, err := build(ctx, set)
	if err != nil {
		return err
	}
	Ready(a.URL())
	return a.Run(ctx)
}

func build(ctx context.Context, settings map[string]string) (*app.App, error) {
	loaded, err := config.Load(config.Sources{Flags: settings})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: loaded.Log.Level}))
	return app.New(ctx, &loaded.Config, app.Options{Logger: log})
}

// Within runs Postroom with these settings in this process, to measure it from inside. It logs errors only.
// stop ends it and returns its error.
func Within(ctx context.Context, settings map[string]string) (a *app.App, stop func() error, err error) {
	set := maps.Clone(settings)
	set["http.listen"], set["log.level"] = "127.0.0.1:0", "error"
	if a, err = build(ctx, set); err != nil {
		return nil, nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- a.Run(running) }()
	return a, func() error { cancel(); return <-done }, nil
}

// ready begins the only line that such a process writes to its standard output.
const ready = "ready "

// Ready writes the line that [Address] waits for.
func Ready(address string) { fmt.Println(ready + address) }

// Command returns the command that starts this program again, as a Postroom with these settings and no
// others.
func Command(settings map[string]string) *exec.Cmd { return CommandOf("", settings) }

// CommandOf is Command for another build of this program; empty: this one.
func CommandOf(program string, settings map[string]string) *exec.Cmd {
	var err error
	if program == "" {
		program, err = os.Executable()
	}
	cmd := exec.Command(program) //nolint:gosec // a build of this program
	cmd.Err = err
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "POSTROOM_") { // the processes must not get the user's settings
			cmd.Env = append(cmd.Env, v)
		}
	}
	set, _ := json.Marshal(settings) // cannot fail for strings
	cmd.Env = append(cmd.Env, asked+"="+string(set))
	return cmd
}

// Address waits until a Postroom is ready, and reads the address of its API from its standard output. It is
// empty for a worker. An error means that the process has ended.
func Address(out *bufio.Reader) (string, error) {
	said, err := out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("it ended before it was ready: %w", err)
	}
	address, ok := strings.CutPrefix(strings.TrimSuffix(said, "\n"), ready)
	if !ok {
		return "", fmt.Errorf("it said %q", said)
	}
	return address, nil
}
