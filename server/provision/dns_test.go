package provision

import "testing"

func TestTermOfAHost(t *testing.T) {
	for host, want := range map[string]string{"Relay.Example.com": "a:relay.example.com",
		"192.0.2.7": "ip4:192.0.2.7", "::ffff:192.0.2.7": "ip4:192.0.2.7", "2001:DB8::7": "ip6:2001:db8::7",
		"[2001:db8::7]": "ip6:2001:db8::7", "fe80::1%eth0": "ip6:fe80::1"} {
		if got := hostTerm(host); got != want {
			t.Errorf("%s is %s, want %s", host, got, want)
		}
	}
}
