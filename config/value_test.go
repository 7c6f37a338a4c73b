package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/config"
)

// TestWrongValues holds the sentence that each wrong value is answered with: it must name the key, the value,
// its place and the fix.
func TestWrongValues(t *testing.T) {
	const relay = "; write one such as smtp://user:password@smtp.example.com:587 or smtps://smtp.example.com"
	const mailbox = "; write one such as shop@example.com or Example Shop <shop@example.com>"
	const clear = " would send the password unencrypted; remove starttls="
	rows := []struct{ key, value, want string }{
		{"http.listen", "3000", `"3000" is not an address to listen on; write host:port, such as 127.0.0.1:3000, or :3000 for every network`},
		{"http.listen", "localhost:http",
			`"localhost:http" has no valid port; write a number from 0 to 65535 after the colon`},
		{"http.listen", "localhost:70000",
			`"localhost:70000" has no valid port; write a number from 0 to 65535 after the colon`},
		{"http.listen", "", "must have a value; write host:port"},
		{"http.trustedProxies", "10.0.0.0/8, proxy.internal", `"10.0.0.0/8, proxy.internal" holds "proxy.internal", which is no network; write IP addresses or ranges, such as 127.0.0.1, 10.0.0.0/8, 2001:db8::/32`},
		{"http.trustedProxies", "10.0.0.0/33", `"10.0.0.0/33" holds "10.0.0.0/33", which is no network; write IP addresses or ranges, such as 127.0.0.1, 10.0.0.0/8, 2001:db8::/32`},
		{"http.trustedProxies", "fe80::1%eth0", `"fe80::1%eth0" holds "fe80::1%eth0", which is no network; write IP addresses or ranges, such as 127.0.0.1, 10.0.0.0/8, 2001:db8::/32`},
		{"dns.servers", "ns.example.com", `"ns.example.com" holds "ns.example.com", which is no IP address; write IP addresses with or without a port, such as 127.0.0.1, 192.0.2.53:5353, [2001:db8::53]:5353`},
		{"dns.servers", "192.0.2.53:0", `"192.0.2.53:0" holds "192.0.2.53:0", which is no IP address; write IP addresses with or without a port, such as 127.0.0.1, 192.0.2.53:5353, [2001:db8::53]:5353`},
		{"redis.url", "db:6379", `"db:6379" isn't a Redis address; start it with redis://, rediss://, redis+sentinel://, redis+cluster:// or unix://`},
		{"redis.url", "http://user:hidden@db",
			`"http://user:******@db" isn't a Redis address; start it with redis://, rediss://, redis+sentinel://, redis+cluster:// or unix://`},
		{"redis.url", "redis://user:hidden@/0",
			`"redis://user:******@/0" names no host; write one such as redis://localhost:6379, or unix:///run/redis.sock`},
		{"redis.url", "unix://?db=1",
			`"unix://?db=1" names no host; write one such as redis://localhost:6379, or unix:///run/redis.sock`},
		{"redis.fsync", "never", `"never" is not one of the choices; write everysec or always`},
		{"redis.partitions", "0", `"0" is out of range; write a whole number, from 1 to 256`},
		{"redis.partitions", "2.5", `"2.5" is not a whole number; write a whole number, from 1 to 256`},
		{"redis.maxMemory", "2G",
			`"2G" is neither a size nor a share; write a size such as 2GB, or a share from 1% to 95%`},
		{"redis.maxMemory", "0%",
			`"0%" is neither a size nor a share; write a size such as 2GB, or a share from 1% to 95%`},
		{"redis.maxMemory", "-1",
			`"-1" is neither a size nor a share; write a size such as 2GB, or a share from 1% to 95%`},
		{"redis.maxMemoryShare", "75%", `"75%" is not a number; write a number, from 0.1 to 1`},
		{"redis.maxMemoryShare", "NaN", `"NaN" is out of range; write a number, from 0.1 to 1`},
		{"outbox.maxLive", "-1", `"-1" is out of range; write a whole number, 0 or more`},
		{"data", "", "must have a value; write a path"},
		{"secret", "hidden", `"******" is too short; use at least 32 bytes, for example from: openssl rand -hex 32`},
		{"token", "hidden", `"******" isn't a safe token; use at least 16 printable ASCII characters without spaces, for example from: openssl rand -hex 32`},
		{"token", "hidden hidden hidden",
			`"******" isn't a safe token; use at least 16 printable ASCII characters without spaces, for example from: openssl rand -hex 32`},
		{"serviceUrl", "mail.example.com",
			`"mail.example.com" is not a web address; write one such as https://mail.example.com`},
		{"serviceUrl", "ftp://mail.example.com",
			`"ftp://mail.example.com" is not a web address; write one such as https://mail.example.com`},
		{"serviceUrl", "https://u@mail.example.com",
			`"https://u@mail.example.com" must not contain credentials, because recipients see it`},
		{"serviceUrl", "https://mail.example.com/?a=b",
			`"https://mail.example.com/?a=b" must end with its host or path; remove everything from ? or # on`},
		{"documents.url", "search:9200",
			`"search:9200" is not an address of OpenSearch or Elasticsearch; write one such as https://user:password@search.internal:9200`},
		{"documents.index", "My Index",
			`"My Index" isn't an index name; use at most 100 lower-case letters, digits, - and _, and start with a letter or digit`},
		{"bounce.domain", "example", `"example" isn't a mail domain; write one such as bounce.example.com`},
		{"bounce.domain", "bücher.example",
			`"bücher.example" isn't a mail domain; write one such as bounce.example.com`},
		{"bounce.address", "bounce.example.com",
			`"bounce.example.com" isn't an email address; write one such as bounces@example.com`},
		{"bounce.lmtp", "bounce.sock",
			`"bounce.sock" is neither the path of a socket nor an address; write one such as /run/postroom/bounce.sock, or 127.0.0.1:24`},
		{"smtp", "relay.example.com:25",
			`"relay.example.com:25" is not a relay URL: it must start with smtp:// or smtps://` + relay},
		{"smtp", "http://relay", `"http://relay" is not a relay URL: it must start with smtp:// or smtps://` +
			relay},
		{"smtp", "smtp://", `"smtp://" names no host` + relay},
		{"smtp", "smtp://u:hid%zzden@relay", `"smtp://u:******@relay" is not a URL` + relay +
			"; in user and password write / as %2F, # as %23, ? as %3F, @ as %40 and % as %25"},
		{"smtp", "smtp://u:hid/den@relay", `"smtp://u:******@relay" is not a URL` + relay +
			"; in user and password write / as %2F, # as %23, ? as %3F, @ as %40 and % as %25"},
		{"smtp", "smtp://u:12#hidden@relay",
			`"smtp://u:******@relay" has extra text after its host; in user and password write / as %2F and # as %23`},
		{"smtp", "smtp://relay/path",
			`"smtp://relay/path" has extra text after its host; in user and password write / as %2F and # as %23`},
		{"smtp", "smtp://u:12?hidden@relay",
			`"smtp://u:******@relay" has an unknown option; there are starttls=required|opportunistic|off and insecure=true. In user and password write ? as %3F`},
		{"smtp", "smtp://user@relay",
			`"smtp://******@relay" has a user or a password, but not both; write user:password@ before the host, or nothing`},
		{"smtp", "smtp://:hidden@relay",
			`"smtp://:******@relay" has a user or a password, but not both; write user:password@ before the host, or nothing`},
		{"smtp", "smtp://u:hidden%00@relay",
			`"smtp://u:******@relay" has a NUL in its credentials, which SMTP can't carry`},
		{"smtp", "smtp://relay:0",
			`"smtp://relay:0" has no valid port; write a number from 1 to 65535 after the host`},
		{"smtp", "smtp://relay:70000",
			`"smtp://relay:70000" has no valid port; write a number from 1 to 65535 after the host`},
		{"smtp", "smtp://relay?starttls=maybe",
			`"smtp://relay?starttls=maybe" has an unknown starttls; write starttls=required, opportunistic or off`},
		{"smtp", "smtps://relay?starttls=off",
			`"smtps://relay?starttls=off" has the option starttls, but smtps:// is encrypted from the first byte; remove it, or write smtp://`},
		{"smtp", "smtp://relay?insecure=perhaps",
			`"smtp://relay?insecure=perhaps" has an unknown insecure; write insecure=true to accept any certificate`},
		{"smtp", "smtp://relay?starttls=off&starttls=required",
			`"smtp://relay?starttls=off&starttls=required" has the option starttls twice`},
		{"smtp", "smtp://u:hidden@relay?starttls=off", `"smtp://u:******@relay?starttls=off"` + clear +
			"off, or the credentials"},
		{"smtp", "smtp://u:hidden@relay?starttls=opportunistic", `"smtp://u:******@relay?starttls=opportunistic"` +
			clear + "opportunistic, or the credentials"},
		{"from", "shop", `"shop" is not an address` + mailbox},
		{"from", "a@example.com, b@example.com", `"a@example.com, b@example.com" is not an address` + mailbox},
		{"from", "a@[127.0.0.1]", `"a@[127.0.0.1]" has no domain name after the @` + mailbox},
		{"from", "Caf\u0085 <a@example.com>", `"Caf\u0085 <a@example.com>" contains a control character` + mailbox},
		{"from", strings.Repeat("a", 65) + "@example.com", `"` + strings.Repeat("a", 65) +
			`@example.com" is too long for an address (at most 64 characters before the @, 254 in total)` + mailbox},
		{"role", "both", `"both" is not one of the choices; write all, api or worker`},
		{"workers.submit", "0", `"0" is out of range; write a whole number, from 1 to 10000`},
		{"workers.submit", "99999999999999999999",
			`"99999999999999999999" is not a whole number; write a whole number, from 1 to 10000`},
		{"delivery.attempts", "101", `"101" is out of range; write a whole number, from 1 to 100`},
		{"delivery.retry.base", "5",
			`"5" is not a duration; write a duration with its unit, such as 5s, 30m or 168h, from 1ms to 24h`},
		{"delivery.retry.base", "-5s",
			`"-5s" is out of range; write a duration with its unit, such as 5s, 30m or 168h, from 1ms to 24h`},
		{"delivery.retry.factor", "Inf", `"Inf" is out of range; write a number, from 1 to 100`},
		{"delivery.retry.jitter", "20", `"20" is out of range; write a number, from 0 to 1`},
		{"delivery.retry.schedule", "1m,soon",
			`"1m,soon" holds something that is not a duration; write durations with their units, such as 1m, 5m, 2h, 1s or more`},
		{"delivery.retry.schedule", "1m,0",
			`"1m,0" is out of range; write durations with their units, such as 1m, 5m, 2h, 1s or more`},
		{"delivery.inDoubt", "drop", `"drop" is not one of the choices; write resend or hold`},
		{"delivery.classifier", "FULL", `"FULL" is not one of the choices; write full or basic`},
		{"message.maxSize", "25M",
			`"25M" is not a size; write a size such as 25MB, 10MiB or plain bytes, from 1KB to 256MB`},
		{"message.maxSize", "9999999999GB",
			`"9999999999GB" is not a size; write a size such as 25MB, 10MiB or plain bytes, from 1KB to 256MB`},
		{"message.maxSize", "1GB",
			`"1GB" is out of range; write a size such as 25MB, 10MiB or plain bytes, from 1KB to 256MB`},
		{"deadLetters.retention", "7d",
			`"7d" is not a duration; write a duration with its unit, such as 5s, 30m or 168h, 0 or more`},
		{"deadLetters.max", "0", `"0" is out of range; write a whole number, 1 or more`},
		{"webhooks.allowPrivate", "maybe", `"maybe" is neither true nor false; write true or false`},
		{"log.level", "trace", `"trace" is not one of the choices; write debug, info, warn or error`},
		{"log.format", "xml", `"xml" is not one of the choices; write auto, text or json`},
	}
	for _, r := range rows {
		t.Run(r.key+"="+r.value, func(t *testing.T) {
			want := []string{r.key + ": " + r.want + " (flag " + r.key + ")"}
			got := faults(t, config.Sources{Flags: map[string]string{r.key: r.value}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(got[0], "hidden") || strings.Contains(got[0], "den@") {
				t.Errorf("%s shows the password", got[0])
			}
		})
	}
}

func TestSizes(t *testing.T) {
	rows := map[string]config.Size{
		"25MB": 25_000_000, "10MiB": 10 << 20, "2048": 2048, "64KB": 64_000, "64kb": 64_000, "64 KiB": 64 << 10,
		"4096B": 4096,
	}
	for text, want := range rows {
		t.Run(text, func(t *testing.T) {
			got := load(t, config.Sources{Flags: map[string]string{"message.maxSize": text}}).Message.MaxSize
			if got != want {
				t.Errorf("%d bytes, want %d", got, want)
			}
		})
	}
}

func TestServiceURLLosesItsLastSlash(t *testing.T) {
	got := load(t, config.Sources{
		Flags: map[string]string{"serviceUrl": "https://example.com/mail/"}}).ServiceURL
	if want := "https://example.com/mail"; got != want {
		t.Errorf("serviceUrl %q, want %q", got, want)
	}
}

func TestSecretIsTakenToTheLetter(t *testing.T) {
	secret := " " + strings.Repeat("s", 32) + "\n"
	got := load(t, config.Sources{
		Env: []string{"POSTROOM_SECRET_FILE=" + write(t, "secret", secret+"\n")}}).Secret
	if got.Reveal() != secret {
		t.Errorf("secret %q, want %q", got.Reveal(), secret)
	}
}

func TestRedisAddresses(t *testing.T) {
	for _, text := range []string{
		"redis://localhost", "rediss://user:p@ss@db:6380/1", "redis+sentinel://:pw@s1:26379,s2:26379/mymaster?db=2",
		"redis+cluster://a:7000,b:7000", "unix:///run/redis.sock?db=3", "redis://[::1]:6379",
	} {
		t.Run(text, func(t *testing.T) {
			if got := load(t, config.Sources{
				Flags: map[string]string{"redis.url": text}}).Redis.URL.Reveal(); got != text {
				t.Errorf("redis.url %q, want %q", got, text)
			}
		})
	}
}

// TestLimitsHold: a limit that can't be read would limit nothing.
func TestLimitsHold(t *testing.T) {
	accepted := func(k config.Key, value string) bool {
		_, err := config.Load(config.Sources{Flags: map[string]string{"redis.url": "redis://db", k.Path: value}})
		return err == nil
	}
	for _, k := range config.Keys() {
		if k.Min != "" {
			below := map[string]string{"duration": "-1s", "list of durations": "-1s"}[k.Kind]
			if below == "" {
				below = "-1"
			}
			if !accepted(k, k.Min) || accepted(k, below) {
				t.Errorf("%s: %s must be accepted and %s refused", k.Path, k.Min, below)
			}
		}
		if k.Max != "" && (!accepted(k, k.Max) || accepted(k, "9"+k.Max)) {
			t.Errorf("%s: %s must be accepted and 9%s refused", k.Path, k.Max, k.Max)
		}
	}
}
