package main

import "testing"

// TestBrowsersOpenWhereTheyAreSeen: over SSH and in containers the link is printed instead.
func TestBrowsersOpenWhereTheyAreSeen(t *testing.T) {
	for _, tc := range []struct {
		name, system string
		env          map[string]string
		want         string
	}{
		{"a desktop", "linux", map[string]string{"DISPLAY": ":0"}, "xdg-open"},
		{"a desktop with Wayland", "linux", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, "xdg-open"},
		{"a server", "linux", nil, ""},
		{"a desktop, over SSH", "linux", map[string]string{"DISPLAY": ":10", "SSH_CONNECTION": "1.2.3.4"}, ""},
		{"a Mac", "darwin", nil, "open"},
		{"a Mac, over SSH", "darwin", map[string]string{"SSH_CONNECTION": "1.2.3.4"}, ""},
		{"Windows", "windows", nil, "rundll32"},
	} {
		if got, _ := browserCommand(tc.system, func(name string) string { return tc.env[name] }); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
