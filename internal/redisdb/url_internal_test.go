package redisdb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func TestParseURL(t *testing.T) {
	for name, row := range map[string]struct {
		url  string
		want target
		text string
	}{
		"plain": {"redis://localhost", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"localhost:6379"}}}, "redis://localhost:6379"},
		"port and database": {"redis://r:7000/3", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"r:7000"}, DB: 3}}, "redis://r:7000/3"},
		"database as query": {"redis://r?db=4", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"r:6379"}, DB: 4}}, "redis://r:6379/4"},
		"password only": {"redis://:p%40ss%2Fw@r", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"r:6379"}, Password: "p@ss/w"}}, "redis://r:6379"},
		"raw @ in password": {"redis://me:p@ss@r", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"r:6379"}, Username: "me", Password: "p@ss"}}, "redis://r:6379"},
		"plus in password": {"redis://me:a+b@r", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"r:6379"}, Username: "me", Password: "a+b"}}, "redis://r:6379"},
		"raw characters in password": {`redis://me:a#b^c d|{"é"}@r`, target{mode: Single,
			UniversalOptions: redis.UniversalOptions{
				Addrs: []string{"r:6379"}, Username: "me", Password: `a#b^c d|{"é"}`}}, "redis://r:6379"},
		"IPv6": {"redis://[::1]:7000", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"[::1]:7000"}}}, "redis://[::1]:7000"},
		"IPv6 without port": {"redis://[::1]", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"[::1]:6379"}}}, "redis://[::1]:6379"},
		"unix": {"unix:///run/redis.sock?db=2", target{mode: Single, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"/run/redis.sock"}, DB: 2}}, "unix:///run/redis.sock/2"},
		"unix with user": {"unix://me:pw@/run/r.sock", target{mode: Single,
			UniversalOptions: redis.UniversalOptions{
				Addrs: []string{"/run/r.sock"}, Username: "me", Password: "pw"}}, "unix:///run/r.sock"},
		"sentinel": {"redis+sentinel://me:pw@a,b:7000/mymaster/1?sentinel_user=s&sentinel_password=sp",
			target{mode: Sentinel, UniversalOptions: redis.UniversalOptions{
				Addrs: []string{"a:26379", "b:7000"}, MasterName: "mymaster", DB: 1, Username: "me", Password: "pw",
				SentinelUsername: "s", SentinelPassword: "sp"}}, "redis+sentinel://a:26379,b:7000/mymaster/1"},
		"cluster": {"redis+cluster://a:1,b:2,c", target{mode: Cluster, UniversalOptions: redis.UniversalOptions{
			Addrs: []string{"a:1", "b:2", "c:6379"}}}, "redis+cluster://a:1,b:2,c:6379"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseURL(row.url)
			if err != nil {
				t.Fatal(err)
			}
			row.want.scheme, _, _ = strings.Cut(row.url, "://")
			if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.String() != row.text {
				t.Errorf("shown as %s, want %s", got, row.text)
			}
		})
	}
}

func TestParseURLWithTLS(t *testing.T) {
	for _, url := range []string{"rediss://r?insecure=true", "rediss+cluster://a,b?insecure=true",
		"rediss+sentinel://a/m?insecure=true"} {
		got, err := parseURL(url)
		if err != nil || got.TLSConfig == nil || !got.TLSConfig.InsecureSkipVerify ||
			!strings.HasPrefix(got.String(), "rediss") {
			t.Errorf("%s: %v, %v", url, got, err)
		}
	}
	got, err := parseURL("rediss://r")
	if err != nil || got.TLSConfig == nil || got.TLSConfig.InsecureSkipVerify {
		t.Errorf("certificates are not checked: %v, %v", got, err)
	}
}

func TestParseURLRefuses(t *testing.T) {
	for name, row := range map[string]struct{ url, want string }{
		"no scheme":           {"localhost:6379", "not an address"},
		"unknown scheme":      {"http://hunter2@r", "unknown scheme"},
		"no host":             {"redis://", "host is malformed or missing"},
		"bad port":            {"redis://r:99999", "host is malformed"},
		"slash in password":   {"redis://me:hun/ter2@r", "host is malformed"},
		"slash after digits":  {"redis://me:12/hunter2@r", "unescaped /"},
		"question mark":       {"redis://me:12?hunter2@r", "unknown parameter"},
		"percent in password": {"redis://me:hunter2%@r", "malformed"},
		"two hosts":           {"redis://a,b", "several hosts"},
		"database name":       {"redis://r/hunter2", "must be a number"},
		"negative database":   {"redis://r/-1", "must be a number"},
		"deep path":           {"redis://r/1/2", "must be a number"},
		"sentinel no master":  {"redis+sentinel://a,b", "name of the master"},
		"cluster database":    {"redis+cluster://a/1", "only database 0"},
		"unix host":           {"unix://run/redis.sock", "full path"},
		"unix no path":        {"unix://", "full path"},
		"unknown parameter":   {"redis://r?pool=5", "unknown parameter"},
		"ca without TLS":      {"redis://r?ca=/x", "rediss://"},
		"missing ca":          {"rediss://r?ca=/nonexistent", "parameter ca"},
		"bad bool":            {"rediss://r?insecure=maybe", "insecure is true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseURL(row.url)
			if err == nil || !strings.HasPrefix(err.Error(), "redis.url: ") ||
				!strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want one about redis.url: %s", err, row.want)
			}
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ter2")) {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// FuzzParseURL: no slip in an address panics, or puts the password into an error or a log.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"redis://me:%s@r", "rediss://r/%s", "unix://%s",
		"redis+sentinel://a,b/m?sentinel_password=%s", "redis://a:%s:b@[::1]:1"} {
		f.Add(s, "/")
	}
	const secret = "Sw0rdfish"
	f.Fuzz(func(t *testing.T, form, between string) {
		url := strings.Replace(form, "%s", secret+between+secret, 1)
		got, err := parseURL(url)
		// a file named in ca, cert or key
		if err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(err.Error(), ": open ") {
			t.Errorf("the error shows the secret: %v", err)
		}
		if err == nil && strings.Contains(got.Password, secret) && strings.Contains(got.String(), got.Password) {
			t.Errorf("the address shows the password: %s", got)
		}
	})
}
