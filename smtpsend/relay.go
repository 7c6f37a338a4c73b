package smtpsend

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// TLSMode is the protection of a connection to a relay.
type TLSMode int

// The modes. With credentials only TLSImplicit and TLSRequired are safe on a network; TLSAuto picks one of
// them.
const (
	// TLSAuto is TLSImplicit on port 465, otherwise TLSRequired with credentials or a pin and
	// TLSOpportunistic without.
	TLSAuto TLSMode = iota
	// TLSImplicit starts with the TLS handshake (RFC 8314), usually on port 465.
	TLSImplicit
	// TLSRequired greets in clear and insists on STARTTLS: a relay that does not offer it gets nothing.
	TLSRequired
	// TLSOpportunistic uses STARTTLS when it is offered and works, and sends in clear otherwise. Without
	// credentials the certificate is not verified: an attacker who can forge it can also remove the offer.
	TLSOpportunistic
	// TLSNone never encrypts. Credentials are then refused unless the relay is on this machine or
	// AllowInsecureAuth is set.
	TLSNone
)

// String returns the mode's name in the settings.
func (m TLSMode) String() string {
	if m < TLSAuto || m > TLSNone {
		return "auto"
	}
	return [...]string{"auto", "implicit", "required", "opportunistic", "none"}[m]
}

// Relay is one SMTP server and how to use it. It is comparable: only equal relays share connections, so a
// message never goes over the login of an old password or token.
type Relay struct {
	ID   string // account or gateway id, for logs and metrics; may be empty
	Host string // name or IP address; required
	Port int    // defaults to 465 with TLSImplicit, otherwise 587 with credentials and 25 without

	TLS TLSMode // zero means TLSAuto
	// accept any certificate; for relays whose certificate cannot be checked otherwise
	InsecureSkipVerify bool
	CA                 string // PEM certificates to trust; defaults to the system's
	MinVersion         uint16 // lowest TLS version as in crypto/tls; zero, and anything lower: TLS 1.2

	// Pin is the base64 SHA-256 of a public key (SPKI, RFC 7469 section 2.4). Several are separated by spaces;
	// one must be in the relay's chain. Without CA the chain needs no known authority. Optional.
	Pin string

	// TLSName is the name that the certificate must have, and that the handshake asks for (SNI). With TLSA
	// records several names may be separated by spaces: one suffices, and the handshake asks for the first.
	// Defaults to Host.
	TLSName string

	// TLSA are the DANE records (RFC 7672) one of which the certificate must match: usage, selector, matching
	// type and data in hexadecimal, several separated by commas. No known authority is needed. Empty if none.
	TLSA string

	Username string // empty means no login
	Password string // for PLAIN and LOGIN
	// OAuth 2.0 token for XOAUTH2 and OAUTHBEARER; goes before Password when both are set
	AccessToken       string
	AuthMethod        string // PLAIN, LOGIN, XOAUTH2 or OAUTHBEARER; defaults to the best that is offered
	AllowInsecureAuth bool   // send credentials in clear to a relay that is not on this machine

	// name to greet with; defaults to the host name if fully qualified, else the local address as a literal
	EHLOName     string
	LocalAddress string // IP address to connect from; empty for the system's choice

	// Proxy is the URL of a proxy: http or https (CONNECT), or socks5, with user:password if it needs them.
	// The proxy resolves the relay's name, unless private addresses are refused (dialing.Guard.Target). CA
	// may also sign the certificate of an https proxy. Empty if none.
	Proxy string

	// OperatorsOwn: the settings file names the relay, so its address may be private whatever Options.Guard
	// says
	OperatorsOwn bool

	Connections           int // maximum of open connections; defaults to 10
	MessagesPerConnection int // transactions before a connection is closed; defaults to 100
	// recipients in one transaction, at most; defaults to 100. A relay's LIMITS RCPTMAX lowers it
	RecipientsPerTransaction int

	IdleTimeout time.Duration // how long a connection is kept unused; defaults to Options.IdleTimeout
	Lifetime    time.Duration // age after which it takes no more messages; defaults to Options.Lifetime

	// Shared is the name under which connections are counted across processes, by Options.Admit. If empty, only
	// Connections bounds them, in this process.
	Shared string
}

// DefaultConnections are the connections to a relay that names no number.
const DefaultConnections = 10

// Reserved returns how many of a relay's connections bulk mail leaves to other mail: a fifth, at least one
// of several.
func Reserved(connections int) int {
	if connections < 2 {
		return 0
	}
	return max(1, connections/5)
}

// String returns the relay's id, host and port. It leaves credentials out, for logs.
func (r Relay) String() string {
	return strings.TrimSpace(r.ID + " " + net.JoinHostPort(r.Host, strconv.Itoa(r.Port)))
}

// GoString is String, for %#v.
func (r Relay) GoString() string { return r.String() }

// LogValue is String, for slog.
func (r Relay) LogValue() slog.Value { return slog.StringValue(r.String()) }

// errRelay is the cause of every error about settings that cannot work.
var errRelay = errors.New("invalid relay settings")

// Check returns an error if the settings cannot work. It does not look names up.
func (r Relay) Check() error {
	switch {
	case r.Host == "":
		return fmt.Errorf("%w: host is empty", errRelay)
	case !printable(r.Host):
		return fmt.Errorf("%w: host %q contains a space or control character", errRelay, r.Host)
	case r.Port < 0 || r.Port > 65535:
		return fmt.Errorf("%w: port %d is out of range", errRelay, r.Port)
	case r.EHLOName != "" && !printable(r.EHLOName):
		return fmt.Errorf("%w: EHLO name %q contains a space or control character", errRelay, r.EHLOName)
	case r.LocalAddress != "" && net.ParseIP(r.LocalAddress) == nil:
		return fmt.Errorf("%w: local address %q is not an IP address", errRelay, r.LocalAddress)
	case r.TLS < TLSAuto || r.TLS > TLSNone:
		return fmt.Errorf("%w: unknown TLS mode %d", errRelay, r.TLS)
	case strings.ContainsRune(r.Username, 0) || strings.ContainsRune(r.Password, 0) ||
		strings.ContainsRune(r.AccessToken, 0):
		return fmt.Errorf("%w: credentials contain a NUL", errRelay)
	case r.IdleTimeout < 0 || r.Lifetime < 0:
		return fmt.Errorf("%w: idle timeout %s or lifetime %s is negative", errRelay, r.IdleTimeout, r.Lifetime)
	}
	if err := r.checkPin(); err != nil {
		return err
	}
	if err := r.checkTLSA(); err != nil {
		return err
	}
	if err := CheckProxy(r.Proxy); err != nil {
		return fmt.Errorf("%w: proxy %w", errRelay, err)
	}
	return r.checkAuthMethod()
}

func (r Relay) checkPin() error {
	if r.Pin == "" {
		return nil
	}
	if r.TLS == TLSOpportunistic || r.TLS == TLSNone {
		return fmt.Errorf("%w: a pin needs TLS to be implicit or required, not %s", errRelay, r.TLS)
	}
	return CheckPin(r.Pin)
}

func (r Relay) checkTLSA() error {
	switch {
	case r.TLSName != strings.Join(strings.Fields(r.TLSName), " "):
		return fmt.Errorf("%w: TLS names %q aren't separated by single spaces", errRelay, r.TLSName)
	case r.TLSA == "":
		return nil
	case r.TLS != TLSImplicit && r.TLS != TLSRequired || r.Pin != "" || r.InsecureSkipVerify:
		return fmt.Errorf("%w: TLSA records need TLS to be implicit or required, verified, and without a pin",
			errRelay)
	}
	_, err := parseTLSA(r.TLSA)
	return err
}

func (r Relay) checkAuthMethod() error {
	switch method := strings.ToUpper(r.AuthMethod); method {
	case "":
	case mechPlain, mechLogin:
		if r.Password == "" {
			return fmt.Errorf("%w: AUTH %s needs a password", errRelay, method)
		}
	case mechXOAuth2, mechOAuthBearer:
		if r.AccessToken == "" {
			return fmt.Errorf("%w: AUTH %s needs an access token", errRelay, method)
		}
	default:
		return fmt.Errorf("%w: unknown AUTH method %q", errRelay, r.AuthMethod)
	}
	return nil
}

// hasCredentials reports whether Postroom logs in.
func (r Relay) hasCredentials() bool {
	return r.Username != "" || r.Password != "" || r.AccessToken != ""
}

// withDefaults returns r with the port, the TLS mode and the limits filled in.
func (r Relay) withDefaults() Relay {
	switch {
	case r.Port != 0:
	case r.TLS == TLSImplicit:
		r.Port = 465
	case r.hasCredentials():
		r.Port = 587
	default:
		r.Port = 25
	}
	switch {
	case r.TLS != TLSAuto:
	case r.Port == 465:
		r.TLS = TLSImplicit
	case r.hasCredentials() || r.Pin != "":
		r.TLS = TLSRequired
	default:
		r.TLS = TLSOpportunistic
	}
	r.Connections = positiveOr(r.Connections, DefaultConnections)
	r.MessagesPerConnection = positiveOr(r.MessagesPerConnection, 100)
	r.RecipientsPerTransaction = positiveOr(r.RecipientsPerTransaction, 100)
	return r
}

// printable reports whether s has no space or control character, so that it is one word of a command.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f })
}

var hostLabel = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)

// ValidHost reports whether s is a host name (RFC 1123; with underscores, which are used) or an IP address.
func ValidHost(s string) bool {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Zone() == ""
	}
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !hostLabel.MatchString(label) {
			return false
		}
	}
	return true
}

// positiveOr returns n if it is positive, else def.
func positiveOr[T int | time.Duration](n, def T) T {
	if n > 0 {
		return n
	}
	return def
}
