package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/testsmtp"
)

// emailEngineBest is the highest rate, in messages a second, that EmailEngine 2.79.2 reached from submit to SMTP on a machine of this kind.
const emailEngineBest = 32

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	messages := flag.Int("messages", 20_000, "messages of a throughput run")
	senders := flag.Int("senders", 50, "concurrent senders")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the throughput run to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	sink, err := testsmtp.New(testsmtp.Options{Discard: true})
	if err != nil {
		return err
	}
	defer sink.Close()
	room, err := open(ctx, sink)
	if err != nil {
		return err
	}
	defer room.close()

	raw, err := rawRate(ctx, sink, *messages, *senders)
	if err != nil {
		return err
	}
	through, err := room.throughput(ctx, sink, *messages, *senders, *profile)
	if err != nil {
		return err
	}
	accept, err := room.latency(ctx, 500, 10*time.Second)
	if err != nil {
		return err
	}
	pickup, err := room.pickup(ctx, sink, 100)
	if err != nil {
		return err
	}
	list, err := room.list(ctx, 10_000)
	if err != nil {
		return err
	}
	print(os.Stdout, raw, through, accept, pickup, list)
	return nil
}

// print writes the table.
func print(w io.Writer, raw, through float64, accept, pickup quantiles, list time.Duration) {
	row := func(what, got, want string, ok bool) {
		mark := "ok"
		if !ok {
			mark = "MISSED"
		}
		fmt.Fprintf(w, "%-58s %18s   %-22s %s\n", what, got, want, mark)
	}
	row("raw SMTP client, no queue, messages/s", fmt.Sprintf("%.0f", raw), "", true)
	row("submit (HTTP) to SMTP, messages/s", fmt.Sprintf("%.0f", through), "", true)
	row("  ÷ raw", fmt.Sprintf("%.2f", through/raw), "at least 0.33", through/raw >= 1.0/3)
	row("  ÷ EmailEngine's best", fmt.Sprintf("%.0f", through/emailEngineBest), "at least 60", through/emailEngineBest >= 60)
	row("accept at 500 submits/s, p50 / p99", fmt.Sprintf("%s / %s", accept.p50, accept.p99), "p99 under 10ms", accept.p99 < 10*time.Millisecond)
	row("idle system, submit to relay, p50 / p99", fmt.Sprintf("%s / %s", pickup.p50, pickup.p99), "p50 under 10ms", pickup.p50 < 10*time.Millisecond)
	row("GET /v1/outbox, 10,000 queued, slowest page", list.String(), "under 50ms", list < 50*time.Millisecond)
}

// room is a Postroom with an embedded Redis, run for the measurement.
type room struct {
	app    *app.App
	client *api.Client
	stop   context.CancelFunc
	done   chan error
	dir    string
}

func open(ctx context.Context, sink *testsmtp.Server) (*room, error) {
	dir, err := os.MkdirTemp("", "postroom-bench-")
	if err != nil {
		return nil, err
	}
	loaded, err := config.Load(config.Sources{Flags: map[string]string{
		"data": dir, "http.listen": "127.0.0.1:0", "smtp": sink.URL(), "from": "bench@example.com", "log.level": "error",
	}})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	a, err := app.New(ctx, &loaded.Config, app.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &room{app: a, stop: stop, done: make(chan error, 1), dir: dir, client: api.NewClient(a.URL(), a.Token(), client())}
	go func() { r.done <- a.Run(runCtx) }()
	return r, nil
}

func (r *room) close() {
	r.stop()
	if err := <-r.done; err != nil {
		fmt.Fprintln(os.Stderr, "bench: stop:", err)
	}
	if err := os.RemoveAll(r.dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench: tidy up:", err)
	}
}
