package webhooks

import (
	"strings"
	"testing"
)

func TestCheckURL(t *testing.T) {
	for _, row := range []struct{ name, url, want string }{
		{"https", "https://example.com/hook?a=b", ""},
		{"http on an odd port", "http://example.com:8123", ""},
		{"an address", "http://[::1]:80/", ""},
		{"empty", "", "must begin"},
		{"no scheme", "example.com/hook", "must begin"},
		{"another scheme", "gopher://example.com", "must begin"},
		{"a file", "file:///etc/passwd", "must begin"},
		{"no host", "https:///hook", "name a host"},
		{"only a port", "https://:443/", "name a host"},
		{"user", "https://user@example.com/", "user or password"},
		{"password", "https://user:pass@example.com/", "user or password"},
		{"fragment", "https://example.com/#x", "fragment"},
		{"line break", "https://example.com/\r\nX: y", "not a URL"},
		{"space in the host", "https://exa mple.com/", "not a URL"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := CheckURL(row.url)
			if row.want == "" && err != nil || row.want != "" &&
				(err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}
