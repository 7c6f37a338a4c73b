package config

import (
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Sources are the sources of the settings in ascending precedence: defaults, File, Env, Flags.
type Sources struct {
	// the file named by --config; empty: POSTROOM_CONFIG, else config.yaml where it exists
	File string
	Env  []string // as os.Environ gives it; nil: no environment
	// path of a setting to its value, as given on the command line; an empty value empties the setting
	Flags map[string]string
	// OtherEnv names POSTROOM_ variables that other parts of the program read. They cause no warning.
	OtherEnv []string
}

// Loaded is the settings and their sources.
type Loaded struct {
	Config
	File     string   // the file that was read; empty when there was none
	Warnings []string // probable mistakes that do not prevent the start

	rows []Row // masked already: package fmt also prints fields that aren't exported
}

// given is the value of a setting as text, and its source.
type given struct{ text, source string }

// Load reads the settings. It returns all faults as one *Invalid.
func Load(s Sources) (*Loaded, error) {
	l := &loading{keys: Keys(), given: map[string]given{}}
	env := readEnv(s.Env)
	file := l.fromFile(s.File, env)
	l.fromEnv(env, s.OtherEnv)
	l.fromFlags(s.Flags)

	out := &Loaded{File: file}
	l.fill(&out.Config)
	l.crossCheck(&out.Config)
	if len(l.problems) > 0 {
		return nil, &Invalid{Problems: l.problems}
	}
	out.Warnings, out.rows = l.warnings, l.rows()
	return out, nil
}

// loading is the state of one Load.
type loading struct {
	keys     []Key
	given    map[string]given // by path; settings that nobody set are absent
	problems []Problem
	warnings []string
}

func (l *loading) problem(key, source, message string) {
	l.problems = append(l.problems, Problem{Key: key, Source: source, Message: message})
}

// fromFlags reads the settings of the command line.
func (l *loading) fromFlags(flags map[string]string) {
	for _, k := range l.keys {
		if text, ok := flags[k.Path]; ok {
			l.given[k.Path] = given{text, "flag " + k.Path}
		}
	}
	for _, path := range sortedKeys(flags) {
		if _, ok := l.key(path); !ok {
			l.problem(path, "flag", "is not a setting"+didYouMean(path, l.paths()))
		}
	}
}

// fill parses the text of every setting into its field.
func (l *loading) fill(c *Config) {
	root := reflect.ValueOf(c).Elem()
	for _, k := range l.keys {
		g := l.inForce(k)
		text := g.text
		if k.mask != "value" { // a secret is not trimmed: other processes do not trim it either
			text = strings.TrimSpace(text)
		}
		if message := k.parse(text, root.FieldByIndex(k.index).Addr().Interface()); message != "" {
			l.problems = append(l.problems, Problem{Key: k.Path, Value: k.show(g.text), Source: g.source,
				Message: message})
		}
	}
}

// inForce returns the text that the field is parsed from.
func (l *loading) inForce(k Key) given {
	if g, ok := l.given[k.Path]; ok {
		return g
	}
	return given{k.Default, "default"}
}

// crossCheck finds settings that are valid alone but not together. It skips those that already have a
// fault.
func (l *loading) crossCheck(c *Config) {
	l.crossCheckPair("http.tls", c.HTTP.TLS.Cert, c.HTTP.TLS.Key)
	l.crossCheckPair("smtpd.tls", c.SMTPD.TLS.Cert, c.SMTPD.TLS.Key)
	l.crossCheckInlet(c.SMTPD)
	l.crossCheckBounce(c.Bounce)
	l.crossCheckProxies(c)
	l.crossCheckOIDC(c)
	l.refuse(c.From != (Mailbox{}) && c.SMTP == (Relay{}), "from", "from",
		"is the sender of the default account, which needs a relay; set smtp too", "smtp")
	l.refuse(c.From == (Mailbox{}) && c.SMTP != (Relay{}), "from", "smtp",
		"is missing, but smtp is set; set the default account's sender, such as "+
			"Shop <shop@example.com>", "from", "smtp")
	l.refuse(c.Redis.URL == "" && c.Role != "all", "role", "role", "is "+c.Role+
		", but the embedded Redis serves one process only; set redis.url, or role to all", "redis.url", "role")
	l.refuse(c.Redis.URL == "" && c.Redis.WaitReplicas > 0, "redis.waitReplicas", "redis.waitReplicas",
		"is "+strconv.Itoa(c.Redis.WaitReplicas)+
			", but the embedded Redis has no replicas; set redis.url, or it to 0", "redis.url", "redis.waitReplicas")
	l.refuse(c.Documents.Store == "opensearch" && c.Documents.URL == "", "documents.url", "documents.store",
		"is missing, but documents.store is opensearch; set its address", "documents.url", "documents.store")
	l.warn(c.Documents.URL != "" && c.Documents.Store != "opensearch", "documents.url",
		"has no effect: documents.store is "+c.Documents.Store)
	l.warn(c.SecretPrevious != "" && c.SecretPrevious == c.Secret, "secretPrevious",
		"has no effect: it is the same as secret")
	for _, path := range []string{"redis.fsync", "redis.maxMemory"} {
		l.warn(c.Redis.URL != "", path,
			"has no effect: it is for the embedded Redis, and redis.url names another")
	}
}

// refuse adds a problem with the setting path if wrong, unless one of the settings fine already has a
// problem. It reports the source of the setting by.
func (l *loading) refuse(wrong bool, path, by, message string, fine ...string) {
	if wrong && !slices.ContainsFunc(l.problems, func(p Problem) bool { return slices.Contains(fine, p.Key) }) {
		l.problem(path, l.given[by].source, message)
	}
}

// warn adds a warning about a setting that was given.
func (l *loading) warn(wrong bool, path, message string) {
	if g, ok := l.given[path]; ok && wrong {
		l.warnings = append(l.warnings, path+" ("+g.source+") "+message)
	}
}

// crossCheckPair finds a certificate without its key, or a key without its certificate.
func (l *loading) crossCheckPair(tls, cert, key string) {
	certPath, keyPath := tls+".cert", tls+".key"
	l.refuse(cert != "" && key == "", keyPath, certPath, "is missing, but "+certPath+
		" is set; TLS needs both files", keyPath)
	l.refuse(cert == "" && key != "", certPath, keyPath, "is missing, but "+keyPath+
		" is set; TLS needs both files", certPath)
}

// crossCheckInlet finds an SMTP listener that no client could use.
func (l *loading) crossCheckInlet(c SMTPD) {
	l.refuse(c.ListenTLS != "" && c.TLS.Cert == "", "smtpd.tls.cert", "smtpd.listenTls",
		"is missing, but smtpd.listenTls is set; TLS needs a certificate", "smtpd.tls.cert", "smtpd.listenTls")
	host, _, _ := net.SplitHostPort(c.Listen)
	l.warn(c.Listen != "" && c.TLS.Cert == "" && !c.InsecureAuth && !loopback(host), "smtpd.listen",
		"has no TLS: only clients on this machine can log in; set smtpd.tls, or smtpd.insecureAuth in a network you trust")
}

// crossCheckBounce finds a bounce listener without an address that it would accept.
func (l *loading) crossCheckBounce(c Bounce) {
	path := "bounce.listen"
	if c.Listen == "" {
		path = "bounce.lmtp"
	}
	l.refuse(c.Domain+c.Address == "" && c.Listen+c.LMTP != "", "bounce.domain", path, "is missing, but "+path+
		" is set; say which domain mail comes back to, or set bounce.address", path, "bounce.domain",
		"bounce.address")
}

// crossCheckProxies finds a PROXY protocol that nobody may speak, and proxies that are everybody.
func (l *loading) crossCheckProxies(c *Config) {
	refuse := func(path string, on bool) {
		l.refuse(on && len(c.HTTP.TrustedProxies) == 0, path, path,
			"is true, but no proxy is trusted; set http.trustedProxies to the addresses of your proxies", path,
			"http.trustedProxies")
	}
	refuse("http.proxyProtocol", c.HTTP.ProxyProtocol)
	refuse("smtpd.proxyProtocol", c.SMTPD.ProxyProtocol)
	refuse("bounce.proxyProtocol", c.Bounce.ProxyProtocol)
	l.warn(slices.ContainsFunc(c.HTTP.TrustedProxies, func(p netip.Prefix) bool { return p.Bits() == 0 }),
		"http.trustedProxies", "trusts every address: anybody can claim to be any client; list only your proxies")
}

func (l *loading) key(path string) (Key, bool) {
	if i := slices.IndexFunc(l.keys, func(k Key) bool { return k.Path == path }); i >= 0 {
		return l.keys[i], true
	}
	return Key{}, false
}

func (l *loading) paths() []string {
	out := make([]string, len(l.keys))
	for i, k := range l.keys {
		out[i] = k.Path
	}
	return out
}
