package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// askedBare is the environment variable that makes this program the bare server.
const askedBare = "BENCH_BARE_SERVER"

// serveBare answers with the picture and the redirect of Postroom and does nothing else, until SIGTERM. Then
// it ends the process. It returns if the process was not started for that. Call it first in main.
func serveBare() {
	if os.Getenv(askedBare) == "" {
		return
	}
	if err := bare(); err != nil {
		fmt.Fprintln(os.Stderr, "bare server:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func bare() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	gif := make([]byte, 43)
	web := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/c/") {
				w.Header().Set("Location", target)
				w.WriteHeader(http.StatusFound)
				return
			}
			w.Header().Set("Content-Type", "image/gif")
			_, _ = w.Write(gif)
		})}
	go func() {
		<-ctx.Done()
		_ = web.Close()
	}()
	rig.Ready("http://" + listener.Addr().String())
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
