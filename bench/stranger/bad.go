package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// kind is a kind of bad client. play is one client, until ctx ends.
type kind struct {
	name string
	play func(ctx context.Context, from *net.Dialer, to targets)
}

// pause is the time between two pieces of a dripping client, and before a client that was cut off returns.
const pause = 2 * time.Second

// kinds returns all kinds.
func kinds() []kind {
	body := strings.Repeat("x", 1<<20)
	return []kind{
		{"dripping headers", toHTTP("GET /v1/outbox HTTP/1.1\r\nHost: x\r\n", drip("X-A: b\r\n"))},
		{"dripping bodies to a provider", toHTTP(head("/webhooks/provider/generic", "", 2<<20), drip("{"))},
		{"stalled bodies of 1 MB to a provider, 2 MB declared",
			toHTTP(head("/webhooks/provider/generic", "", 2<<20)+body, hold)},
		{"stalled bodies to submit without a token, 25 MB declared",
			toHTTP(head("/v1/submit", "", 25<<20)+body, hold)},
		{"large bodies to unknown providers", toHTTP(head("/webhooks/provider/nobody", "", 2<<20)+body, hold)},
		{"dripping forms to unsubscribe", toHTTP(head("/unsubscribe", "", 4<<10), drip("a"))},
		{"idle connections", toHTTP("GET /health HTTP/1.1\r\nHost: x\r\n\r\n", hold)},
		{"wrong tokens", toHTTP("", repeat(head("/v1/submit", "wrong-token-0123456789", 2)+"{}"))},
		{"wrong links of clicks", toHTTP("", repeat("GET /c/wrong HTTP/1.1\r\nHost: x\r\n\r\n"))},
		{"wrong links of unsubscribing", toHTTP("", repeat(head("/unsubscribe?t=wrong", "", 0)))},
		{"silent at the SMTP inlet", to(func(t targets) string { return t.SMTP }, "", hold)},
		{"silent at the bounce listener", to(func(t targets) string { return t.Bounce }, "", hold)},
		{"half TLS handshakes", to(func(t targets) string { return t.SMTPS }, "\x16\x03\x01\x02\x00\x01", hold)},
	}
}

// head is the head of a POST.
func head(path, token string, length int) string {
	h := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n",
		path,
		length)
	if token != "" {
		h += "Authorization: Bearer " + token + "\r\n"
	}
	return h + "\r\n"
}

// then is what a client does after its first words, until its connection or ctx ends.
type then func(ctx context.Context, conn net.Conn)

func toHTTP(first string, do then) func(context.Context, *net.Dialer, targets) {
	return to(func(t targets) string { return t.HTTP }, first, do)
}

// to plays a client that comes back when it is cut off.
func to(target func(targets) string, first string, do then) func(context.Context, *net.Dialer, targets) {
	return func(ctx context.Context, from *net.Dialer, t targets) {
		for ctx.Err() == nil {
			if conn, err := from.DialContext(ctx, "tcp", target(t)); err == nil {
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				if _, err := io.WriteString(conn, first); err == nil {
					do(ctx, conn)
				}
				stop()
				_ = conn.Close()
			}
			_ = rig.Wait(ctx, pause)
		}
	}
}

// hold reads until the connection ends.
func hold(_ context.Context, conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// drip sends a few bytes at a time.
func drip(piece string) then {
	return func(ctx context.Context, conn net.Conn) {
		for rig.Wait(ctx, pause) == nil {
			if _, err := io.WriteString(conn, piece); err != nil {
				return
			}
		}
	}
}

// repeat sends a request and reads an answer, once in each pause.
func repeat(request string) then {
	return func(ctx context.Context, conn net.Conn) {
		answer := make([]byte, 16<<10)
		for {
			if _, err := io.WriteString(conn, request); err != nil {
				return
			}
			if _, err := conn.Read(answer); err != nil || rig.Wait(ctx, pause) != nil {
				return
			}
		}
	}
}
