package main

import (
	"net"
	"strings"
	"testing"

	"github.com/postroom/postroom/config"
)

// TestTakenPortNamesTheFlag: whoever starts a second Postroom is shown what to change.
func TestTakenPortNamesTheFlag(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	address := first.Addr().String()
	_, err = net.Listen("tcp", address)
	for want, c := range map[string]*config.Config{
		"--listen HOST:PORT (setting http.listen)": {HTTP: config.HTTP{Listen: address}},
		"--set smtpd.listen=HOST:PORT":             {SMTPD: config.SMTPD{Listen: address}},
		"--set smtpd.listenTls=HOST:PORT":          {SMTPD: config.SMTPD{ListenTLS: address}},
		"--set bounce.listen=HOST:PORT":            {Bounce: config.Bounce{Listen: address}},
		"--set monitor.listen=HOST:PORT":           {Monitor: config.Monitor{Listen: address}},
	} {
		if got := takenPort(c, err).Error(); !strings.Contains(got, "address already in use") ||
			!strings.Contains(got, want) || !strings.Contains(got, "ss -ltnp") {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if got := takenPort(&config.Config{HTTP: config.HTTP{Listen: "127.0.0.1:1"}}, err); got != err {
		t.Errorf("an address of no setting: %v", got)
	}
}
