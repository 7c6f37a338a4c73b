package locale

import "testing"

func TestZone(t *testing.T) {
	for name, want := range map[string]string{
		"": "UTC", "UTC": "UTC", "Europe/Zurich": "Europe/Zurich", "Local": "", "Mars/Olympus": "",
		"../../etc/passwd": "", "/etc/localtime": "", "Europe": "",
	} {
		got := ""
		zone, err := Zone(name)
		if err == nil {
			got = zone.String()
		}
		if got != want {
			t.Errorf("zone %q is %q, %v, want %q", name, got, err, want)
		}
	}
}
