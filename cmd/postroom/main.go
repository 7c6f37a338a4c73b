package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command line. The first SIGINT or SIGTERM ends the context, so that everything stops in
// order; from then on the signals have their usual effect again, and the second ends the process at once.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], newConsole(os.Stdin, os.Stdout, os.Stderr))
}
