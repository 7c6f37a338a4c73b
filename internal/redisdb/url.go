package redisdb

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/dialing"
)

// target is the address of a Redis and its credentials.
type target struct {
	mode   Mode
	scheme string
	redis.UniversalOptions
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

// inPassword matches characters that passwords have and addresses of go-redis can't.
var inPassword = regexp.MustCompile("[^!$&'()*+,;=%@:._~a-zA-Z0-9-]")

// parse leaves user, password, database and socket to go-redis. It does what go-redis can't: name the mode
// and several hosts in one address, and read certificates from files.
func parse(raw string) (target, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return target{}, errors.New("not an address such as redis://host:6379/0")
	}
	t := target{scheme: scheme}
	port := "6379"
	switch scheme {
	case "redis", "rediss", "unix":
		t.mode = Single
	case "redis+sentinel", "rediss+sentinel":
		t.mode, port = Sentinel, "26379"
	case "redis+cluster", "rediss+cluster":
		t.mode = Cluster
	default:
		return target{}, errors.New(
			"unknown scheme, use redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster or rediss+cluster")
	}
	end := strings.IndexAny(rest+"/", "/?")
	at := strings.LastIndexByte(rest[:end], '@') + 1
	user, hosts := inPassword.ReplaceAllStringFunc(rest[:at], url.PathEscape), rest[at:end]
	plain, _, _ := strings.Cut(scheme, "+")
	u, err := url.Parse(plain + "://" + user + rest[end:])
	if err != nil {
		return target{}, errors.New("the address is malformed; write % in user, password and path as %25, " +
			"/ in user and password as %2F, ? as %3F")
	}
	if scheme == "unix" && (hosts != "" || strings.Trim(u.Path, "/") == "") {
		return target{}, errors.New("a unix address needs the full path of a socket: unix:///run/redis/redis.sock?db=0")
	}
	if scheme != "unix" {
		if err := t.place(u, hosts, port); err != nil {
			return target{}, err
		}
	}
	return t, t.take(u)
}

// place sets the hosts, and cuts the name of the master from the path of Sentinels.
func (t *target) place(u *url.URL, hosts, port string) error {
	for host := range strings.SplitSeq(hosts, ",") {
		host = strings.TrimSpace(host)
		h, p, err := net.SplitHostPort(host)
		if err != nil {
			h, p = strings.Trim(host, "[]"), port
		}
		number, err := strconv.ParseUint(p, 10, 16)
		if err != nil || number == 0 || strings.ContainsAny(h, "[]@ ") || h == "" {
			return errors.New("a host is malformed or missing; write host or host:port, several separated by commas, IPv6 in [ ]. " +
				"Is there an unescaped / or ? in the password? Write them as %2F and %3F")
		}
		t.Addrs = append(t.Addrs, net.JoinHostPort(h, p))
	}
	u.Host = t.Addrs[0] // the only one that go-redis sees
	if t.mode == Single && len(t.Addrs) > 1 {
		return errors.New("several hosts need redis+sentinel:// or redis+cluster://")
	}
	if t.mode == Sentinel {
		t.MasterName, u.Path, _ = strings.Cut(strings.Trim(u.Path, "/"), "/")
		if t.MasterName == "" {
			return errors.New("a Sentinel address needs the name of the master: redis+sentinel://host1,host2/mymaster")
		}
	}
	return nil
}

// take takes the parameters, and what go-redis reads. It refuses go-redis' own parameters: we set these.
func (t *target) take(u *url.URL) error {
	params, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the part after ? is malformed; write & and % in values as %26 and %25")
	}
	for name := range params {
		switch name {
		case "db", "ca", "cert", "key", "insecure", "sentinel_user", "sentinel_password":
		default:
			return errors.New("unknown parameter, known are db, ca, cert, key, insecure, sentinel_user, sentinel_password; " +
				"is there an unescaped ? in the password? Write it as %3F")
		}
	}
	u.RawQuery = url.Values{"db": params["db"]}.Encode()
	o, err := redis.ParseURL(u.String())
	if err != nil || o.DB < 0 {
		return errors.New("the database must be a number such as /0; is there an unescaped / in the password? Write it as %2F")
	}
	if t.mode == Cluster && o.DB != 0 {
		return errors.New("a Redis Cluster has only database 0")
	}
	if t.scheme == "unix" {
		t.Addrs = []string{o.Addr}
	}
	t.Username, t.Password, t.DB = o.Username, o.Password, o.DB
	t.SentinelUsername, t.SentinelPassword = params.Get("sentinel_user"), params.Get("sentinel_password")
	t.TLSConfig, err = tlsConfig(params, o.TLSConfig != nil)
	return err
}

// tlsConfig trusts the system's authorities, or only those in the file ca; cert and key are our certificate
// for servers that require one.
func tlsConfig(params url.Values, secure bool) (*tls.Config, error) {
	ca, cert, key, insecure := params.Get("ca"), params.Get("cert"), params.Get("key"), params.Get("insecure")
	switch {
	case insecure != "" && insecure != "true" && insecure != "false":
		return nil, errors.New("the parameter insecure is true or false")
	case !secure && (ca+cert+key != "" || insecure == "true"):
		return nil, errors.New("ca, cert, key and insecure are for TLS; use rediss://, rediss+sentinel:// or rediss+cluster://")
	case !secure:
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure == "true"}
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
	text := t.scheme + "://" + strings.Join(t.Addrs, ",")
	if t.MasterName != "" {
		text += "/" + t.MasterName
	}
	if t.DB != 0 {
		text += "/" + strconv.Itoa(t.DB)
	}
	return text
}
