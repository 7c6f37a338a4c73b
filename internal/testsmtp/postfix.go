package testsmtp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testkit"
)

// Postfix is a running Postfix.
type Postfix struct {
	Port int
	CA   string // PEM certificate to trust, with Options.Login
	host string
	dir  string
	mail string
}

// PostfixOptions are a test's options for its Postfix.
type PostfixOptions struct {
	Host string // address to listen on; defaults to 127.0.0.1
	Port int    // 0: a free one of 127.0.0.1
	// Chain is a key and its certificates in PEM. Postfix then offers STARTTLS to anybody.
	Chain string
	// Settings are more lines of main.cf.
	Settings string
	// Login makes it insist on STARTTLS and on one of these users and passwords. If nil, it serves anybody, in
	// clear.
	Login map[string]string
	// Users are those who have a mailbox at example.net. Postfix takes mail for others too, and sends it
	// back. Nil means everybody has one.
	Users []string
	// Transports are where mail for other domains goes, as in transport(5), for example lmtp:unix:/run/lmtp. Nil
	// means nowhere.
	Transports map[string]string
	// Pipe is the command of the transport "program", which gets the mail on its standard input and runs as
	// nobody; ${original_recipient} in it is whom the mail is for.
	Pipe string
}

// settings are the contents of main.cf; DIR, UID and GID stand for this instance's.
const settings = `compatibility_level = 3.6
config_directory = DIR/etc
queue_directory = DIR/queue
data_directory = DIR/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = DIR/log/postfix.log
maillog_file_prefixes = DIR
myhostname = mx.example.net
mydestination =
mynetworks = NETWORKS
inet_interfaces = loopback-only
inet_protocols = ipv4
smtpd_relay_restrictions = permit_mynetworks, permit_sasl_authenticated, reject
smtpd_discard_ehlo_keywords =
alias_maps =
virtual_mailbox_domains = example.net, xn--bcher-kva.example
virtual_mailbox_base = DIR/mail
virtual_mailbox_maps = MAILBOXES
smtpd_reject_unlisted_recipient = no
transport_maps = TRANSPORTS
virtual_uid_maps = static:UID
virtual_gid_maps = static:GID
virtual_minimum_uid = 1
default_transport = error:no mail leaves this test
`

// guarded are the settings added with Options.Login.
const guarded = `smtpd_tls_security_level = encrypt
smtpd_tls_chain_files = DIR/etc/chain.pem
smtpd_tls_auth_only = yes
smtpd_tls_received_header = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:LOGIN
`

// offered are the settings added with Options.Chain.
const offered = `smtpd_tls_security_level = may
smtpd_tls_chain_files = DIR/etc/chain.pem
smtpd_tls_received_header = yes
`

const services = `ADDRESS inet n - n - - smtpd
pickup    unix n - n 60 1 pickup
cleanup   unix n - n - 0 cleanup
qmgr      unix n - n 300 1 qmgr
rewrite   unix - - n - - trivial-rewrite
bounce    unix - - n - 0 bounce
defer     unix - - n - 0 bounce
trace     unix - - n - 0 bounce
error     unix - - n - - error
anvil     unix - - n - 1 anvil
tlsmgr    unix - - n 1000? 1 tlsmgr
scache    unix - - n - 1 scache
proxymap  unix - - n - - proxymap
virtual   unix - n n - - virtual
smtp      unix - - n - - smtp
lmtp      unix - - n - - lmtp
program   unix - n n - 2 pipe
  flags=Rq user=nobody argv=PIPE
postlog   unix-dgram n - n - 1 postlogd
`

// StartPostfix runs Postfix until the test ends.
func StartPostfix(t *testing.T, o PostfixOptions) *Postfix {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test runs a real Postfix, which only root can start: run the tests as root (sudo make test)")
	}
	owner, err := user.Lookup("postfix")
	if err != nil {
		t.Fatalf("this test needs Postfix (%v): run the tests with `make test`, which installs it", err)
	}
	dir, err := os.MkdirTemp("", "postroom-postfix-")
	if err != nil {
		t.Fatal(err)
	}
	if o.Port == 0 {
		o.Port = testkit.FreePort(t)
	}
	s := &Postfix{Port: o.Port, host: cmp.Or(o.Host, "127.0.0.1"), dir: dir, mail: filepath.Join(dir, "mail",
		"all")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.lay(t, owner, o)
	s.control(t, "start")
	t.Cleanup(func() { s.control(t, "stop") })
	s.await(t)
	return s
}

func (s *Postfix) address() string { return net.JoinHostPort(s.host, strconv.Itoa(s.Port)) }

// lay makes the directories and files of the instance.
func (s *Postfix) lay(t *testing.T, owner *user.User, o PostfixOptions) {
	t.Helper()
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string]int{"etc": 0, "queue": 0, "log": 0, "data": uid, "mail": uid} {
		path := filepath.Join(s.dir, name)
		if err := os.Mkdir(path, 0o755); err != nil { //nolint:gosec // Postfix' own users read it
			t.Fatal(err)
		}
		if err := os.Chown(path, who, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	main, networks, login := settings, "127.0.0.0/8", ""
	if o.Login != nil {
		main, networks, login = settings+guarded, "", serveLogins(t, o.Login)
		s.CA = s.certify(t)
	}
	if o.Chain != "" {
		main += offered
		if err := os.WriteFile(filepath.Join(s.dir, "etc", "chain.pem"), []byte(o.Chain), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	main += o.Settings
	mailboxes, transports := "static:all/", map[string]string{}
	if o.Users != nil {
		boxes := map[string]string{}
		for _, u := range o.Users {
			boxes[u+"@example.net"] = "all/"
		}
		mailboxes = inline(boxes)
	}
	if o.Transports != nil {
		transports = o.Transports
	}
	fill := strings.NewReplacer("MAILBOXES", mailboxes, "TRANSPORTS", inline(transports), "PIPE",
		cmp.Or(o.Pipe, "/bin/false"),
		"DIR", s.dir, "UID", owner.Uid, "GID", owner.Gid, "ADDRESS", s.address(), "NETWORKS", networks, "LOGIN",
		login)
	for name, text := range map[string]string{"main.cf": main, "master.cf": services} {
		if err := os.WriteFile(filepath.Join(s.dir, "etc", name), []byte(fill.Replace(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// inline is a table within main.cf.
func inline(table map[string]string) string {
	var b strings.Builder
	for name, value := range table {
		fmt.Fprintf(&b, " { %s = %s }", name, value)
	}
	if b.Len() == 0 {
		return ""
	}
	return "inline:{" + b.String() + " }"
}

// control runs the postfix command on the instance.
func (s *Postfix) control(t *testing.T, verb string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "postfix", "-c", filepath.Join(s.dir, "etc"), verb).CombinedOutput()
	if err != nil {
		t.Errorf("postfix %s: %v\n%s%s", verb, err, out, s.Log())
	}
}

// await waits until Postfix takes connections.
func (s *Postfix) await(t *testing.T) {
	t.Helper()
	late := time.Now().Add(30 * time.Second)
	for {
		conn, err := net.Dial("tcp", s.address())
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(late) {
			t.Fatalf("Postfix does not listen: %v\n%s", err, s.Log())
		}
		pause(t)
	}
}

// Wait waits until n emails have been delivered and returns their files.
func (s *Postfix) Wait(t *testing.T, n int) []string {
	t.Helper()
	late := time.Now().Add(time.Minute)
	for {
		files, err := filepath.Glob(filepath.Join(s.mail, "new", "*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) >= n {
			return files
		}
		if time.Now().After(late) {
			t.Fatalf("%d of %d mails were delivered within a minute\n%s", len(files), n, s.Log())
		}
		pause(t)
	}
}

// Log is what Postfix has logged.
func (s *Postfix) Log() string {
	log, err := os.ReadFile(filepath.Join(s.dir, "log", "postfix.log"))
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// pause is the step of waiting for another process.
func pause(t *testing.T) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// Flush has Postfix immediately retry the mail that it could not deliver.
func (s *Postfix) Flush(t *testing.T) {
	t.Helper()
	s.control(t, "flush")
}
