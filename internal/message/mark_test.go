package message_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/message"
)

func wire(lines ...string) string { return strings.Join(lines, "\r\n") }

func shout(html string) (string, error) { return strings.ReplaceAll(html, "shop", "SHOP"), nil }

func TestMark(t *testing.T) {
	list := []message.Header{{Name: "List-ID", Value: "<news.x.test>"}}
	for name, c := range map[string]struct{ raw, want string }{
		"plain text": {
			wire("From: a@x.test", "", "shop", ""), wire("From: a@x.test", "List-ID: <news.x.test>", "", "shop", ""),
		},
		"a field that is there": {
			wire("list-id: <old>", "From: a@x.test", "", "x", ""), wire("List-ID: <news.x.test>", "From: a@x.test", "",
				"x", ""),
		},
		"html": {
			wire("Content-Type: text/html", "", "<p>shop</p>", ""),
			wire("Content-Type: text/html", "Content-Transfer-Encoding: 7bit", "List-ID: <news.x.test>", "",
				"<p>SHOP</p>", ""),
		},
		"in quoted-printable": {
			wire("Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: quoted-printable", "", "<p>sh=",
				"op =C3=BC</p>", ""),
			wire("Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: quoted-printable",
				"List-ID: <news.x.test>", "", "<p>SHOP =C3=BC</p>", ""),
		},
		"in base64": {
			wire("Content-Type: text/html", "Content-Transfer-Encoding: BASE64", "", "PHA+c2hv", "cDwvcD4=", ""),
			wire("Content-Type: text/html", "Content-Transfer-Encoding: 7bit", "List-ID: <news.x.test>", "",
				"<p>SHOP</p>"),
		},
		"the first of its parts": {
			wire(`Content-Type: multipart/mixed; boundary="b"`, "", "--b",
				`Content-Type: multipart/alternative; boundary="c"`, "", "--c", "", "shop", "--c",
				"Content-Type: text/html", "", "shop", "--c--", "--b", "Content-Type: text/html", "", "shop", "--b--",
				""),
			wire(`Content-Type: multipart/mixed; boundary="b"`, "List-ID: <news.x.test>", "", "--b",
				`Content-Type: multipart/alternative; boundary="c"`, "", "--c", "", "shop", "--c",
				"Content-Type: text/html", "Content-Transfer-Encoding: 7bit", "", "SHOP", "--c--", "--b",
				"Content-Type: text/html", "", "shop", "--b--", ""),
		},
		"an attachment": {
			wire("Content-Type: text/html", "Content-Disposition: attachment; filename=x.html", "", "shop", ""),
			wire("Content-Type: text/html", "Content-Disposition: attachment; filename=x.html",
				"List-ID: <news.x.test>", "", "shop", ""),
		},
		"what is signed": {
			wire(`Content-Type: multipart/signed; boundary="b"`, "", "--b", "Content-Type: text/html", "", "shop",
				"--b--", ""),
			wire(`Content-Type: multipart/signed; boundary="b"`, "List-ID: <news.x.test>", "", "--b",
				"Content-Type: text/html", "", "shop", "--b--", ""),
		},
		"a message signed by DKIM": {
			wire("DKIM-Signature: v=1", "Content-Type: text/html", "", "shop", ""),
			wire("DKIM-Signature: v=1", "Content-Type: text/html", "List-ID: <news.x.test>", "", "shop", ""),
		},
		"another charset": {
			wire("Content-Type: text/html; charset=ISO-2022-JP", "", "shop", ""),
			wire("Content-Type: text/html; charset=ISO-2022-JP", "List-ID: <news.x.test>", "", "shop", ""),
		},
		"an encoding nobody knows": {
			wire("Content-Type: text/html", "Content-Transfer-Encoding: x-uue", "", "shop", ""),
			wire("Content-Type: text/html", "Content-Transfer-Encoding: x-uue", "List-ID: <news.x.test>", "", "shop",
				""),
		},
		"base64 that is none": {
			wire("Content-Type: text/html", "Content-Transfer-Encoding: base64", "", "shop!", ""),
			wire("Content-Type: text/html", "Content-Transfer-Encoding: base64", "List-ID: <news.x.test>", "", "shop!",
				""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := message.Mark([]byte(c.raw), list, shout)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarkFails(t *testing.T) {
	if _, err := message.Mark([]byte("no header"), nil, nil); err == nil {
		t.Error("a text that is no message was marked")
	}
	failed := errors.New("no")
	_, err := message.Mark([]byte("Content-Type: text/html\r\n\r\nx"), nil, func(string) (string, error) {
		return "", failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

func FuzzMark(f *testing.F) {
	f.Add("Content-Type: text/html\r\n\r\nshop\r\n")
	f.Add("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\nshop\r\n--b--\r\n")
	f.Fuzz(func(t *testing.T, raw string) {
		c, _, err := message.FromRaw([]byte(raw), message.Override{
			Date: time.Unix(0, 0), From: message.Address{Address: "a@x.test"}, To: []message.Address{
				{Address: "b@x.test"}}, MessageID: "<1@x.test>",
		}, nil)
		if err != nil {
			return
		}
		same, err := message.Mark(c.Raw, nil, nil)
		if err != nil || string(same) != string(c.Raw) {
			t.Errorf("%q became %q though nothing was asked for, %v", c.Raw, same, err)
		}
		if marked, err := message.Mark(c.Raw, []message.Header{{Name: "List-ID", Value: "<x>"}},
			shout); err != nil || !strings.Contains(string(marked), "\r\nList-ID: <x>\r\n") {
			t.Errorf("%q became %q, %v", c.Raw, marked, err)
		}
	})
}
