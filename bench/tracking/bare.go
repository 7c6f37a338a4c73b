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
)

// askedBare names the variable that makes this program the bare server.
const askedBare = "BENCH_BARE_SERVER"

// serveBare answers what Postroom answers, picture and redirect, and does nothing else, until SIGTERM; then
// it ends the process, if it was started for that. It stands first in main.
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
	fmt.Println("http://" + listener.Addr().String())
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
