package gateways

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/smtpsend"
)

// validate checks a gateway where private addresses are permitted.
func validate(g api.Gateway) error {
	return (&Store{guard: dialing.New(dialing.Options{AllowPrivate: true})}).Check(g)
}

const goodPin = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

// certificate makes one, in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestWrongGateways(t *testing.T) {
	oauth := func(change func(o *api.OAuth2)) func(*api.Gateway) {
		return func(g *api.Gateway) {
			*g = oauthGateway("g")
			change(g.OAuth2)
		}
	}
	proxy := func(url string) func(*api.Gateway) { return func(g *api.Gateway) { g.Proxy = url } }
	tls := func(t api.SMTPTLS) func(*api.Gateway) { return func(g *api.Gateway) { g.TLS = &t } }
	tests := []struct {
		name   string
		change func(g *api.Gateway)
		want   []string
	}{
		{"no id", func(g *api.Gateway) { g.Gateway = "" }, []string{"gateway"}},
		{"the id of a page", func(g *api.Gateway) { g.Gateway = "new" }, []string{"gateway"}},
		{"an id with a colon", func(g *api.Gateway) { g.Gateway = "g:state" }, []string{"gateway"}},
		{"a name of two lines", func(g *api.Gateway) { g.Name = "a\nb" }, []string{"name"}},
		{"no host, no port", func(g *api.Gateway) { g.Host, g.Port = "", 0 }, []string{"host", "port"}},
		{"a URL for a host", func(g *api.Gateway) { g.Host = "smtp://a" }, []string{"host"}},
		{"a preset unknown", func(g *api.Gateway) { g.Preset = "hotmail" }, []string{"preset"}},
		{"SES without region", func(g *api.Gateway) { g.Preset, g.Host = "ses", "" }, []string{"host"}},
		{"generic without host", func(g *api.Gateway) { g.Preset, g.Host, g.Port = "generic", "", 0 },
			[]string{"host"}},
		{"TLS from the start where there is none", func(g *api.Gateway) { g.Preset, g.Secure = "office365", true },
			[]string{"secure"}},
		{"a password without user", func(g *api.Gateway) { g.User = "" }, []string{"user"}},
		{"a user without password", func(g *api.Gateway) { g.Pass = "" }, []string{"pass"}},
		{"a NUL in the password", func(g *api.Gateway) { g.Pass = "a\x00" }, []string{"pass"}},
		{"OAuth and a password", func(g *api.Gateway) { g.OAuth2 = oauthGateway("g").OAuth2 }, []string{"oauth2"}},
		{"OAuth with nobody to ask", oauth(func(o *api.OAuth2) { o.TokenURL = "" }), []string{"oauth2.provider"}},
		{"OAuth of an unknown provider", oauth(func(o *api.OAuth2) { o.Provider = "yahoo" }),
			[]string{"oauth2.provider"}},
		{"OAuth in clear", oauth(func(o *api.OAuth2) { o.TokenURL = "http://login.example.com/" }),
			[]string{"oauth2.tokenUrl"}},
		{"OAuth without anything", oauth(func(o *api.OAuth2) { *o = api.OAuth2{} }),
			[]string{"oauth2.provider", "oauth2.clientId", "oauth2.refreshToken", "oauth2.user"}},
		{"TLS words unknown", tls(api.SMTPTLS{MinVersion: "TLSv1", StartTLS: "yes"}),
			[]string{"tls.minVersion", "tls.starttls"}},
		{"a password in clear", func(g *api.Gateway) {
			g.User, g.Pass, g.TLS = "u", "p",
				&api.SMTPTLS{StartTLS: "off"}
		}, []string{"tls.starttls"}},
		{"a password in clear, perhaps", func(g *api.Gateway) {
			g.User, g.Pass, g.TLS = "u", "p",
				&api.SMTPTLS{StartTLS: "opportunistic"}
		}, []string{"tls.starttls"}},
		{"a burst of nothing", func(g *api.Gateway) { g.Limits = &api.Limits{Burst: 5} }, []string{"limits.burst"}},
		{"STARTTLS inside TLS", func(g *api.Gateway) { g.Secure, g.TLS = true, &api.SMTPTLS{StartTLS: "off"} },
			[]string{"tls.starttls"}},
		{"a CA that is none", tls(api.SMTPTLS{
			CA: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}), []string{"tls.ca"}},
		{"a CA with more behind it", tls(api.SMTPTLS{CA: certificate(t) + "what?"}), []string{"tls.ca"}},
		{"a CA of nothing", tls(api.SMTPTLS{CA: " "}), []string{"tls.ca"}},
		{"a pin in hex", tls(api.SMTPTLS{PinSHA256: strings.Repeat("0a", 32)}), []string{"tls.pinSha256"}},
		{"one pin too short", tls(api.SMTPTLS{PinSHA256: goodPin + " AAAA"}), []string{"tls.pinSha256"}},
		{"pins of nothing", tls(api.SMTPTLS{PinSHA256: " "}), []string{"tls.pinSha256"}},
		{"limits", func(g *api.Gateway) {
			g.Limits = &api.Limits{PerSecond: -1, PerMinute: math.NaN(), PerDay: math.Inf(1), Burst: -1,
				Connections: 1001, PerConnection: 100_001}
		}, []string{"limits.perSecond", "limits.perMinute", "limits.perDay", "limits.burst", "limits.connections",
			"limits.perConnection"}},
		{"a proxy without scheme", proxy("proxy.example.com:1080"), []string{"proxy"}},
		{"a proxy of another kind", proxy("socks4://proxy.example.com"), []string{"proxy"}},
		{"a proxy without host", proxy("http://:3128"), []string{"proxy"}},
		{"a proxy with a path", proxy("http://proxy.example.com/x"), []string{"proxy"}},
		{"a proxy with port 0", proxy("http://proxy.example.com:0"), []string{"proxy"}},
		{"a proxy with a line", proxy("http://u:a%0d%0ab@proxy.example.com"), []string{"proxy"}},
		{"a proxy with no user but a password", proxy("http://:p@proxy.example.com"), []string{"proxy"}},
		{"a SOCKS password too long", proxy("socks5://u:" + strings.Repeat("p", 256) + "@proxy.example.com"),
			[]string{"proxy"}},
		{"a name for the local address", func(g *api.Gateway) { g.LocalAddress = "localhost" },
			[]string{"localAddress"}},
		{"two words for EHLO", func(g *api.Gateway) { g.SMTPEhloName = "a b" }, []string{"smtpEhloName"}},
		{"everything", func(g *api.Gateway) {
			*g = api.Gateway{
				Gateway: "/", Name: "\x00", Preset: "x", Host: "/", User: "u", TLS: &api.SMTPTLS{CA: "x", PinSHA256: "x"},
				Proxy:        "x",
				LocalAddress: "x", SMTPEhloName: "-", Limits: &api.Limits{Burst: -1},
			}
		}, []string{"gateway", "name", "localAddress", "smtpEhloName", "proxy", "preset", "host", "port", "pass",
			"tls.ca", "tls.pinSha256", "limits.burst"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := gateway("g")
			tt.change(&g)
			if diff := cmp.Diff(tt.want, testkit.WrongFields(t, validate(g))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFaultsRepeatNoSecret(t *testing.T) {
	g := gateway("g")
	g.Proxy, g.Pass = "http://u:proxy-secret@host:port", "pass-secret\x00"
	g.OAuth2 = &api.OAuth2{TokenURL: "https://u:token-secret@x\x00", ClientSecret: "client-secret\n"}
	if err := validate(g); err == nil || strings.Contains(err.Error(), "-secret") {
		t.Errorf("%v", err)
	}
}

func TestGoodGateways(t *testing.T) {
	tests := map[string]func(g *api.Gateway){
		"plain":    func(*api.Gateway) {},
		"no login": func(g *api.Gateway) { g.User, g.Pass = "", "" },
		"OAuth":    func(g *api.Gateway) { *g = oauthGateway("g") },
		"OAuth by preset": func(g *api.Gateway) {
			*g = api.Gateway{Gateway: "g", Preset: "gmail", OAuth2: &api.OAuth2{ClientID: "c", RefreshToken: "r",
				User: "u"}}
		},
		"a token server of a test": func(g *api.Gateway) {
			*g = oauthGateway("g")
			g.OAuth2.TokenURL = "http://127.0.0.1:1234/token"
		},
		"two CAs": func(g *api.Gateway) {
			g.TLS = &api.SMTPTLS{CA: certificate(t) + "\n" + certificate(t) + "\n"}
		},
		"two pins": func(g *api.Gateway) {
			g.TLS = &api.SMTPTLS{PinSHA256: goodPin + "  " + goodPin}
		},
		"a proxy": func(g *api.Gateway) {
			g.Proxy = "https://u:p%40ss:%2F@proxy.example.com:8443/"
		},
		"a SOCKS proxy":  func(g *api.Gateway) { g.Proxy = "socks5://[2001:db8::1]:1080" },
		"a proxy's user": func(g *api.Gateway) { g.Proxy = "socks5://user@192.0.2.1" },
		"all limits": func(g *api.Gateway) {
			g.Limits = &api.Limits{PerSecond: 0.5, PerMinute: 30, PerDay: 1e9, Burst: 1, Connections: 1000,
				PerConnection: 1}
		},
		"EHLO literals":  func(g *api.Gateway) { g.SMTPEhloName = "[IPv6:2001:db8::1]" },
		"a rooted host":  func(g *api.Gateway) { g.Host = "smtp.example.com." },
		"a masked pass":  func(g *api.Gateway) { g.Pass = records.Mask },
		"a masked proxy": func(g *api.Gateway) { g.Proxy = "http://u:******@proxy.example.com" },
	}
	for name := range presets {
		tests["preset "+name] = func(g *api.Gateway) {
			*g = api.Gateway{Gateway: "g", Preset: name, User: "u", Pass: "p"}
			if presets[name].Host == "" {
				g.Host = "email-smtp.eu-west-1.amazonaws.com"
			}
		}
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := gateway("g")
			change(&g)
			if err := validate(g); err != nil {
				t.Fatal(err)
			}
			if err := ofGateway(g).Relay("gateway:g").SMTP.Check(); err != nil {
				t.Errorf("smtpsend refuses it: %v", err)
			}
		})
	}
}

func FuzzHostNames(f *testing.F) {
	for _, s := range []string{"a.example.com", "127.0.0.1", "::1", "[::1]", "[IPv6:::1]", "a b", "ä.example",
		"-a", "a:25", "[127.0.0.1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		relay := smtpsend.Relay{Host: "h", EHLOName: s}
		if addressLiteral(s) || smtpsend.ValidHost(s) {
			if err := relay.Check(); err != nil {
				t.Errorf("%q is let through, smtpsend says %v", s, err)
			}
		}
		if smtpsend.ValidHost(s) && strings.ContainsAny(s, " \r\n/@[]") {
			t.Errorf("%q passes for a host", s)
		}
	})
}

// FuzzProxy: whatever passes for the URL of a proxy is one for smtpsend, too; its password survives sealing
// and never shows.
func FuzzProxy(f *testing.F) {
	for _, s := range []string{"http://u:p@h:1", "socks5://h", "https://u:%20%40:@[::1]:8443/",
		"http://u:******@h", "http://u:v1.x.y@h", "socks5://%41:b@h", "x"} {
		f.Add(s)
	}
	ring := testkit.Ring(f, "secret")
	f.Fuzz(func(t *testing.T, s string) {
		wrong := func(proxy string) bool { return len((&Settings{proxy: proxy, absent: true}).Check()) > 0 }
		if s == "" || wrong(s) {
			return
		}
		if err := (smtpsend.Relay{Host: "h", Proxy: s}).Check(); err != nil {
			t.Fatalf("%q is let through, smtpsend says %v", s, err)
		}
		proxy := s
		secret := (&Settings{}).secrets(nil, nil, &proxy)[2]
		password := secret.Get()
		if password == records.Mask || password == "" {
			return
		}
		secret.Set(ring.Seal([]byte(password), "gateway:g:proxy"))
		if wrong(proxy) && len(password) < 100 {
			t.Fatalf("%q is kept as %q", s, proxy)
		}
		plain, err := ring.Open(secret.Get(), "gateway:g:proxy")
		if secret.Set(string(plain)); err != nil || secret.Get() != password {
			t.Fatalf("%q became %q: %v", s, proxy, err)
		}
		if err := (smtpsend.Relay{Host: "h", Proxy: proxy}).Check(); err != nil {
			t.Fatalf("%q became %q: %v", s, proxy, err)
		}
		secret.Set(records.Mask)
		if origin(proxy) != origin(s) || secret.Get() != records.Mask || wrong(proxy) {
			t.Fatalf("%q shows as %q", s, proxy)
		}
	})
}

func TestAPasswordInClearStaysOnThisMachine(t *testing.T) {
	for host, want := range map[string]bool{"127.0.0.1": true, "::1": true, "localhost": true, "127.0.0.2": true,
		"10.0.0.1": false, "localhost.example": false} {
		g := gateway("g")
		g.Host, g.TLS = host, &api.SMTPTLS{StartTLS: "off"}
		if err := validate(g); (err == nil) != want {
			t.Errorf("a password in clear to %s: %v", host, err)
		}
	}
}

// A host that is an address is judged when it is stored. Names are judged when they are dialed.
func TestAddressesThatMayNotBeDialed(t *testing.T) {
	public := &Store{guard: dialing.New(dialing.Options{Setting: "relays.allowPrivate"})}
	private := &Store{guard: dialing.New(dialing.Options{AllowPrivate: true})}
	for _, row := range []struct {
		name           string
		g              api.Gateway
		public, always []string // wrong fields where private addresses are refused, and where they are not
	}{
		{"names", api.Gateway{Host: "relay.internal", Proxy: "socks5://proxy.internal"}, nil, nil},
		{"public", api.Gateway{Host: "93.184.215.14", Proxy: "socks5://93.184.215.14"}, nil, nil},
		{"loopback", api.Gateway{Host: "127.0.0.1"}, []string{"host"}, nil},
		{"this machine", api.Gateway{Host: "LocalHost."}, []string{"host"}, nil},
		{"private", api.Gateway{Host: "10.0.0.1", Proxy: "http://user:pw@[fd12::1]:3128"},
			[]string{"host", "proxy"}, nil},
		{"metadata", api.Gateway{Host: "169.254.169.254", Proxy: "http://[::ffff:a9fe:a9fe]"},
			[]string{"host", "proxy"}, []string{"host", "proxy"}},
		{"token server", api.Gateway{Host: "relay.test", OAuth2: &api.OAuth2{TokenURL: "https://10.0.0.1/token",
			ClientID: "c", RefreshToken: "r", User: "u"}}, []string{"oauth2.tokenUrl"}, nil},
		{"token server at metadata", api.Gateway{Host: "relay.test", OAuth2: &api.OAuth2{
			TokenURL: "https://169.254.169.254/token", ClientID: "c", RefreshToken: "r", User: "u"}},
			[]string{"oauth2.tokenUrl"}, []string{"oauth2.tokenUrl"}},
	} {
		row.g.Gateway, row.g.Port = "g", 587
		for s, want := range map[*Store][]string{public: row.public, private: row.always} {
			err := s.Check(row.g)
			if want == nil && err == nil {
				continue
			}
			if diff := cmp.Diff(want, testkit.WrongFields(t, err)); diff != "" {
				t.Errorf("%s: %s", row.name, diff)
			}
		}
	}
	f := public.CheckPath(Path{Proxy: "http://127.0.0.1:8080"})
	if len(f) != 1 || f[0].Key != "proxy" || !strings.HasSuffix(f[0].Message, "relays.allowPrivate is off") {
		t.Errorf("path of a message: %+v", f)
	}
}
