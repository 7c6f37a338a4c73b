package dialing

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRedirectsAreNotFollowed(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer,
		"https": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			server := start(http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound))
			defer server.Close()
			client := New(Options{AllowPrivate: true}).Client(HTTP{})
			if certified, ok := server.Client().Transport.(*http.Transport); ok && name == "https" {
				client.Transport.(*transport).direct.TLSClientConfig = certified.TLSClientConfig
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusFound {
				t.Errorf("status %d", answer.StatusCode)
			}
			// nor would it help to follow them
			client.CheckRedirect = nil
			if err := get(t, client, server.URL); !errors.Is(err, ErrRefused) {
				t.Errorf("followed: %v", err)
			}
		})
	}
}

// The first line of a server that speaks another protocol is not shown.
func TestBannersAreNotTold(t *testing.T) {
	for _, banner := range []string{"SSH-2.0-OpenSSH_9.9 secret\r\n", "HTTP/1.1 secret\r\n\r\n",
		"HTTP/1.1 200 OK\r\nsecret\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: secret\r\n\r\n",
		"-ERR secret command\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, banner)
		}()
		var log bytes.Buffer
		g := New(Options{AllowPrivate: true,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		err = get(t, g.Client(HTTP{}), "http://"+l.Addr().String())
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "SSH") {
			t.Errorf("%q: %v", banner, err)
		}
		if !strings.Contains(log.String(), "secret") {
			t.Errorf("%q is not in the log: %s", banner, &log)
		}
		l.Close()
		<-done
	}
}

// The proxy of the environment may have a private address; what it is asked for is judged.
func TestProxyOfTheEnvironment(t *testing.T) {
	asked := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Host
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL) // read once: this is the only test that needs it
	t.Setenv("http_proxy", proxy.URL)
	dns := nameServer(t, map[string][][4]byte{"public.example.": {{93, 184, 215, 14}},
		"private.example.": {{10, 0, 0, 1}}})
	g := New(Options{Resolver: dns})
	client := g.Client(HTTP{Environment: true})
	for _, host := range []string{"public.example", "known-to-the-proxy.example"} {
		if err := get(t, client, "http://"+host); err != nil || <-asked != host {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"private.example", "10.0.0.1", "169.254.169.254", "[::ffff:169.254.169.254]"} {
		if err := get(t, client, "http://"+host); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := get(t, g.WithPrivate().Client(HTTP{Environment: true}), "http://10.0.0.1"); err != nil {
		t.Errorf("private, allowed: %v", err)
	}
	if got := <-asked; got != "10.0.0.1" || len(asked) > 0 {
		t.Errorf("asked for %s, and %d more", got, len(asked))
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name, value string
		want        time.Duration
	}{
		{"absent", "", 0},
		{"seconds", "120", 2 * time.Minute},
		{"zero", "0", 0},
		{"negative", "-5", 0},
		{"a date", now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{"a past date", now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"beyond any number", "99999999999999999999", 0},
		{"words", "soon", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := RetryAfter(http.Header{"Retry-After": {row.value}}, now); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "-1", "Sat, 21 Nov 2026 10:00:00 GMT", "9e9", "4294967295"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if d := RetryAfter(http.Header{"Retry-After": {s}}, now); d < 0 {
			t.Fatalf("%q: %s", s, d)
		}
	})
}
