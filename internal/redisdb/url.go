package redisdb

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/dialing"
)

// target is the address of a Redis and its credentials.
type target struct {
	mode    Mode
	network string // "tcp" or "unix"
	// host:port of the server, of each Sentinel, of some Cluster nodes; or the path of a socket
	addrs    []string
	master   string // the name Sentinels know the master by
	db       int
	username string
	password string
	sentinel struct{ username, password string }
	tls      *tls.Config // nil: plain
}

// scheme is the meaning of an address's scheme.
type scheme struct {
	mode    Mode
	network string
	tls     bool
	port    string // used when an address has none
}

// schemeOf returns the scheme of this name, if it is known.
func schemeOf(name string) (scheme, bool) {
	switch name {
	case "redis":
		return scheme{Single, "tcp", false, "6379"}, true
	case "rediss":
		return scheme{Single, "tcp", true, "6379"}, true
	case "unix":
		return scheme{Single, "unix", false, ""}, true
	case "redis+sentinel":
		return scheme{Sentinel, "tcp", false, "26379"}, true
	case "rediss+sentinel":
		return scheme{Sentinel, "tcp", true, "26379"}, true
	case "redis+cluster":
		return scheme{Cluster, "tcp", false, "6379"}, true
	case "rediss+cluster":
		return scheme{Cluster, "tcp", true, "6379"}, true
	}
	return scheme{}, false
}

// parseURL parses the setting redis.url. No error quotes the address: it may hold a password, in any place
// after a typing error.
func parseURL(raw string) (target, error) {
	t, err := parse(raw)
	if err != nil {
		return target{}, fmt.Errorf("redis.url: %w", err)
	}
	return t, nil
}

func parse(raw string) (target, error) {
	name, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return target{}, errors.New("not an address such as redis://host:6379/0")
	}
	s, ok := schemeOf(name)
	if !ok {
		return target{}, errors.New(
			"unknown scheme, use redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster or rediss+cluster")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	t := target{mode: s.mode, network: s.network}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if err := t.user(authority[:at]); err != nil {
			return target{}, err
		}
		authority = authority[at+1:]
	}
	path, query, _ := strings.Cut(tail, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		return target{}, errors.New("the part after ? is malformed; write & and % in values as %26 and %25")
	}
	if err := t.place(s, authority, path); err != nil {
		return target{}, err
	}
	return t, t.params(params, s.tls)
}

// user parses "user:password", ":password" or "user".
func (t *target) user(info string) error {
	name, password, _ := strings.Cut(info, ":")
	var errName, errPassword error
	t.username, errName = url.PathUnescape(name)
	t.password, errPassword = url.PathUnescape(password)
	if errName != nil || errPassword != nil {
		return errors.New("user or password is malformed; write % in them as %25, / as %2F, ? as %3F")
	}
	return nil
}

// place parses what follows the user: hosts, and the path, whose meaning depends on the scheme.
func (t *target) place(s scheme, authority, path string) error {
	if s.network == "unix" {
		if authority != "" || path == "" || path == "/" {
			return errors.New("a unix address needs the full path of a socket: unix:///run/redis/redis.sock?db=0")
		}
		decoded, err := url.PathUnescape(path)
		if err != nil {
			return errors.New("the path of the socket is malformed; write % in it as %25")
		}
		t.addrs = []string{decoded}
		return nil
	}
	var err error
	if t.addrs, err = hosts(authority, s.port); err != nil {
		return err
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if s.mode == Sentinel {
		if t.master, parts = parts[0], parts[1:]; t.master == "" {
			return errors.New("a Sentinel address needs the name of the master: redis+sentinel://host1,host2/mymaster")
		}
	}
	if s.mode == Single && len(t.addrs) > 1 {
		return errors.New("several hosts need redis+sentinel:// or redis+cluster://")
	}
	if len(parts) > 1 {
		return errors.New("unexpected path; is there an unescaped / in the password? Write it as %2F")
	}
	if len(parts) == 0 || parts[0] == "" {
		return nil
	}
	return t.setDB(parts[0])
}

// hosts splits "a,b:7000,[::1]:7001" and adds the usual port where there is none.
func hosts(authority, port string) ([]string, error) {
	var addrs []string
	for host := range strings.SplitSeq(authority, ",") {
		host = strings.TrimSpace(host)
		h, p, err := net.SplitHostPort(host)
		if err != nil {
			h, p = strings.Trim(host, "[]"), port
		}
		number, err := strconv.ParseUint(p, 10, 16)
		if err != nil || number == 0 || strings.ContainsAny(h, "[]@ ") || h == "" {
			return nil, errors.New("a host is malformed or missing; write host or host:port, several separated by commas, IPv6 in [ ]. " +
				"Is there an unescaped / or ? in the password? Write them as %2F and %3F")
		}
		addrs = append(addrs, net.JoinHostPort(h, p))
	}
	return addrs, nil
}

func (t *target) setDB(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("the database must be a number such as /0; is there an unescaped / in the password? Write it as %2F")
	}
	if t.mode == Cluster && n != 0 {
		return errors.New("a Redis Cluster has only database 0")
	}
	t.db = n
	return nil
}

// params parses the query.
func (t *target) params(params url.Values, secure bool) error {
	var ca, cert, key string
	insecure := false
	for name, values := range params {
		value := values[len(values)-1]
		var err error
		switch name {
		case "db":
			err = t.setDB(value)
		case "ca":
			ca = value
		case "cert":
			cert = value
		case "key":
			key = value
		case "insecure":
			insecure = value == "true"
			if !insecure && value != "false" {
				err = errors.New("the parameter insecure is true or false")
			}
		case "sentinel_user":
			t.sentinel.username = value
		case "sentinel_password":
			t.sentinel.password = value
		default:
			return errors.New("unknown parameter, known are db, ca, cert, key, insecure, sentinel_user, sentinel_password; " +
				"is there an unescaped ? in the password? Write it as %3F")
		}
		if err != nil {
			return err
		}
	}
	if !secure {
		if ca+cert+key != "" || insecure {
			return errors.New("ca, cert, key and insecure are for TLS; use rediss://, rediss+sentinel:// or rediss+cluster://")
		}
		return nil
	}
	var err error
	t.tls, err = tlsConfig(ca, cert, key, insecure)
	return err
}

// tlsConfig trusts the system's authorities, or only those in the file ca; cert and key are our certificate
// for servers that require one.
func tlsConfig(ca, cert, key string, insecure bool) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("parameter ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("parameter ca: no certificate in that file")
		}
	}
	if cert != "" || key != "" {
		files, err := dialing.LoadCertificate(cert, key, nil)
		if err != nil {
			return nil, fmt.Errorf("parameters cert and key: %w", err)
		}
		files.Client(c)
	}
	return c, nil
}

// String returns the address without secrets.
func (t target) String() string {
	var b strings.Builder
	for _, name := range []string{"redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel",
		"redis+cluster", "rediss+cluster"} {
		if s, _ := schemeOf(name); s.network == t.network && s.tls == (t.tls != nil) &&
			(s.mode == t.mode || t.mode == Embedded) {
			b.WriteString(name + "://")
			break
		}
	}
	b.WriteString(strings.Join(t.addrs, ","))
	if t.master != "" {
		b.WriteString("/" + t.master)
	}
	if t.db != 0 {
		fmt.Fprintf(&b, "/%d", t.db)
	}
	return b.String()
}
