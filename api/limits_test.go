package api_test

import (
	"testing"

	"github.com/postroom/postroom/api"
)

func TestLimitsInWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		limits *api.Limits
		want   string
	}{
		{"none", nil, ""},
		{"empty", &api.Limits{}, ""},
		{"fraction of a second", &api.Limits{PerSecond: 0.5, PerDay: 2000000}, "0.5 a second, 2000000 a day"},
		{"all", &api.Limits{PerSecond: 5, Burst: 10, PerMinute: 100, PerDay: 1000, Connections: 3,
			PerConnection: 50},
			"5 a second, 10 at once, 100 a minute, 1000 a day, 3 connections, 50 messages a connection"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.limits.Words(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
