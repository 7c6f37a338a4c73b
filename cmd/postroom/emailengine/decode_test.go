package emailengine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
)

func TestSecrets(t *testing.T) {
	for _, tc := range []struct{ name, secret, why string }{
		{"none", "", "it is sealed, and no secret was given"},
		{"wrong", "another", "it does not open with the secret"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := recorded(t, "sealed.json", Options{Secret: tc.secret})
			f := read(t, s)
			if len(f.Accounts) != 1 || f.Accounts[0].Value.Account != "lan" || len(f.Gateways) != 1 {
				t.Errorf("accounts %+v and gateways %+v are taken", f.Accounts, f.Gateways)
			}
			want := map[string]string{"account shop": tc.why, "account news": tc.why, "account mailbox": tc.why,
				"account tokens": tc.why, "gateway ses": tc.why, "gateway tls": tc.why}
			for id, why := range wantUnfit {
				want[id] = why
			}
			checkUnfit(t, f.Unfit, want)
		})
	}
}

func TestOpener(t *testing.T) {
	const sealed = "$wd01$aes-256-gcm$d4d71ca6b951a4bfdeca468b563906f2$945fa4bfca31176407331e07$4e85cd50d12631c54a666dea4ce03d00$e6862af5a9e76e84a25134"
	for _, tc := range []struct {
		name, text, want string
		err              error
	}{
		{"sealed", sealed, "pa$$word ü", nil},
		{"in clear", "pa$$word ü", "pa$$word ü", nil},
		{"in clear, with dollars", "$a$b$c$d$e$f", "$a$b$c$d$e$f", nil},
		{"changed", strings.Replace(sealed, "e6862a", "e6862b", 1), "", errWrongSecret},
		{"cut", sealed[:len(sealed)-2], "", errWrongSecret},
		{"no hex", sealed + "zz", "", errSeal},
		{"another cipher", strings.Replace(sealed, "256", "128", 1), "", errSeal},
		{"a short nonce", strings.Replace(sealed, "$945f", "$5f", 1), "", errSeal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := (opener{secret}).open(tc.text); got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

// TestGarbage: what can't be read is named, and does not keep the rest from being taken.
func TestGarbage(t *testing.T) {
	s, db := recorded(t, "plain.json", Options{Prefix: "moved"})
	ctx, p := t.Context(), "moved:"
	db.HSet(ctx, p+"iad:shop", "smtp", `{"auth":{"pass":"hunter2"`)
	db.HSet(ctx, p+"iad:news", "smtp", `{"host":"smtp.example.net","port":"many"}`)
	db.HSet(ctx, p+"gateway:ses", "port", "\xd9\x20smtp") // a text that is shorter than it says
	db.HSet(ctx, p+"gateway:tls", "host", "\x81\x01\x02") // a map with a number as its key
	welcome := db.SMembers(ctx, p+"tpl::i").Val()[0]
	db.HSet(ctx, p+"tpl::c", welcome+":content", "")
	later := db.LRange(ctx, p+"bull:submit:wait", 0, -1).Val()[0]
	db.HSet(ctx, p+"bull:submit:"+later, "data", "[]]")
	for id, raw := range db.HGetAll(ctx, p+"iaq:mailbox").Val() {
		db.HSet(ctx, p+"iaq:mailbox", id, raw[:len(raw)/2])
	}
	db.Del(ctx, p+"iaq:o365")
	f := read(t, s)
	want := map[string]string{"account shop": "its field smtp can't be read", "account news": "field smtp",
		"gateway ses": "its field port can't be read", "gateway tls": "its field host can't be read",
		"template " + welcome: "its content can't be read"}
	for id, why := range wantUnfit {
		want[id] = why
	}
	checkUnfit(t, f.Unfit, want)
	for _, u := range f.Unfit {
		if strings.Contains(u.Why, "hunter2") {
			t.Errorf("the reason has the password: %s", u.Why)
		}
	}
	if len(f.Accounts) != 3 || len(f.Gateways) != 1 || len(f.Templates) != 3 {
		t.Errorf("%d accounts, %d gateways, %d templates", len(f.Accounts), len(f.Gateways), len(f.Templates))
	}
	got, unfit := mails(t, s)
	reasons := ""
	for _, u := range unfit {
		reasons += u.Why + "\n"
	}
	if len(unfit) != 3 || len(got) != 2 {
		t.Errorf("%d messages; not taken: %s", len(got), reasons)
	}
	for _, why := range []string{"its job can't be read", "its content can't be read", "its content is gone"} {
		if !strings.Contains(reasons, why) {
			t.Errorf("no message with %q: %s", why, reasons)
		}
	}
}

// TestCutMessage: a message that ends anywhere too early is refused.
func TestCutMessage(t *testing.T) {
	_, db := recorded(t, "sealed.json", Options{})
	for id, raw := range db.HGetAll(t.Context(), "iaq:shop").Val() {
		if _, err := readMessage(job{Account: "shop", QueueID: id}, []byte(raw)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		for n := range len(raw) {
			if _, err := readMessage(job{}, []byte(raw[:n])); err == nil {
				t.Errorf("%s: %d of %d bytes are taken", id, n, len(raw))
			}
		}
	}
}

func TestNoEmailEngineInRedis(t *testing.T) {
	_, err := open(t, Options{From: testredis.URL(t)}).Read(context.Background())
	if err == nil || !strings.Contains(err.Error(), "--prefix") {
		t.Errorf("error %v", err)
	}
}

// TestRelay holds the options of nodemailer to those of Postroom.
func TestRelay(t *testing.T) {
	for _, tc := range []struct {
		name, smtp, want, lacks string
	}{
		{"STARTTLS where offered", `{"host":"h","port":587,"secure":false}`,
			`{"host":"h","port":587,"secure":false}`, ""},
		{"a port as text", `{"host":"h","port":"25"}`, `{"host":"h","port":25,"secure":false}`, ""},
		{"port 465 without a word", `{"host":"h","port":465}`, `{"host":"h","port":465,"secure":true}`, ""},
		{"port 465 with STARTTLS", `{"host":"h","port":465,"secure":false}`,
			`{"host":"h","port":465,"secure":false}`, ""},
		{"another port with TLS", `{"host":"h","port":4650,"secure":true,"ignoreTLS":true}`,
			`{"host":"h","port":4650,"secure":true}`, ""},
		{"requireTLS", `{"host":"h","port":25,"requireTLS":true}`,
			`{"host":"h","port":25,"secure":false,"tls":{"starttls":"required"}}`, ""},
		{"ignoreTLS", `{"host":"h","port":25,"ignoreTLS":true,"auth":false}`,
			`{"host":"h","port":25,"secure":false,"tls":{"starttls":"off"}}`, ""},
		{"ignoreTLS with a password", `{"host":"h","port":25,"ignoreTLS":true,"auth":{"user":"u","pass":"p"}}`,
			`{"host":"h","port":25,"secure":false,"auth":{"user":"u","pass":"p"}}`, "ignoreTLS"},
		{"ignoreTLS with a password on this machine",
			`{"host":"127.0.0.1","port":25,"ignoreTLS":true,"auth":{"user":"u","pass":"p"}}`,
			`{"host":"127.0.0.1","port":25,"secure":false,"auth":{"user":"u","pass":"p"},"tls":{"starttls":"off"}}`, ""},
		{"a certificate of its own", `{"host":"h","port":25,"tls":{"ca":["A","B"],"minVersion":"TLSv1.1"}}`,
			`{"host":"h","port":25,"secure":false,"tls":{"ca":"A\nB"}}`, ""},
		{"any certificate", `{"host":"h","port":25,"tls":{"rejectUnauthorized":false}}`,
			`{"host":"h","port":25,"secure":false,"tls":{"rejectUnauthorized":false}}`, ""},
		{"ciphers", `{"host":"h","port":25,"tls":{"ciphers":"DEFAULT"}}`, `{"host":"h","port":25,"secure":false}`,
			"tls.ciphers"},
		{"an access token", `{"host":"h","port":25,"auth":{"user":"u","pass":false,"accessToken":"t"}}`,
			`{"host":"h","port":25,"secure":false,"auth":{"user":"u","accessToken":"t"}}`, ""},
		{"no password", `{"host":"h","port":25,"auth":{"user":"u"}}`, "", "it has a user, but no password"},
		{"no port", `{"host":"h"}`, "", "no port"},
		{"switched off", `false`, "", "no relay"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := account{Account: "a"}
			if err := json.Unmarshal([]byte(tc.smtp), &a.SMTP); err != nil {
				t.Fatal(err)
			}
			p, err := relays{}.account(a)
			if tc.want == "" {
				if err == nil || !strings.Contains(err.Error(), tc.lacks) {
					t.Errorf("error %v, want %q", err, tc.lacks)
				}
				return
			}
			got, _ := json.Marshal(p.Value.SMTP)
			var have, want any
			_, _ = json.Unmarshal(got, &have), json.Unmarshal([]byte(tc.want), &want)
			if diff := cmp.Diff(want, have); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if lacks := strings.Join(p.Lacks, " "); (lacks == "") != (tc.lacks == "") ||
				!strings.Contains(lacks, tc.lacks) {
				t.Errorf("it lacks %q, want %q", lacks, tc.lacks)
			}
		})
	}
}

// TestSettingsOfAllRelays: the proxy of all, and certificates that are not verified, go to each account and
// gateway.
func TestSettingsOfAllRelays(t *testing.T) {
	v := values{"ignoreMailCertErrors": json.RawMessage("true"), "proxyEnabled": json.RawMessage("true"),
		"proxyUrl": json.RawMessage(`"socks5://proxy:1080"`), "smtpServerEnabled": json.RawMessage("true"),
		"trackOpens": json.RawMessage("false"), "localAddresses": json.RawMessage(`["192.0.2.1"]`)}
	f := &Found{}
	v.into(f)
	checkUnfit(t, f.Unfit, map[string]string{"setting smtpServerEnabled": "smtpd.listen",
		"setting localAddresses": "localAddress"})
	r := v.relays(opener{})
	f.account("a", func(a *account) error {
		return json.Unmarshal([]byte(`{"smtp":{"host":"h","port":25}}`), a)
	}, r)
	f.gateway("g", func(g *gateway) error { return json.Unmarshal([]byte(`{"host":"h","port":25}`), g) }, r)
	a, g := f.Accounts[0].Value, f.Gateways[0].Value
	if a.Proxy != "socks5://proxy:1080" || g.Proxy != a.Proxy {
		t.Errorf("the proxies are %q and %q", a.Proxy, g.Proxy)
	}
	for _, tls := range []*api.SMTPTLS{a.SMTP.TLS, g.TLS} {
		if tls == nil || tls.RejectUnauthorized == nil || *tls.RejectUnauthorized {
			t.Errorf("certificates are verified: %+v", tls)
		}
	}
}
