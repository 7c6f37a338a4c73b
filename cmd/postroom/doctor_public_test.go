package main

import (
	"fmt"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/config"
)

func TestWhatRecipientsComeBackTo(t *testing.T) {
	z := zone{mx: map[string][]*net.MX{"bounce.example.com.": {{Host: "mx.example.com."}}},
		broken: map[string]bool{"slow.example.com.": true}}
	for name, c := range map[string]struct {
		url, domain string
		want        []string
	}{
		"neither":         {},
		"both in order":   {"https://mail.example.com", "bounce.example.com", []string{"ok", "ok"}},
		"not encrypted":   {"http://mail.example.com", "", []string{"warn"}},
		"nobody takes it": {"", "nowhere.example.com", []string{"fail"}},
		"nobody can tell": {"", "slow.example.com", []string{"warn"}},
	} {
		x := &exam{cfg: &config.Config{ServiceURL: c.url, Bounce: config.Bounce{Domain: c.domain}}, resolver: z}
		var got []string
		for _, f := range x.public(t.Context()) {
			got = append(got, fmt.Sprint(f.Status))
			if f.Check != "public" || f.Message == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
