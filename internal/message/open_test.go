package message_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/message"
)

func TestOpen(t *testing.T) {
	raw := strings.ReplaceAll(`Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=
To: =?utf-8?Q?J=C3=BCrgen=2C_x?= <j@x.example>
List-Id: =?utf-8?Q?=C3=BC?=
 <a.example>
X-Plain: a=?utf-8?Q?b?=c
Content-Type: Multipart/Mixed; boundary=B

--B
Content-Type: text/plain; charset=US-ASCII; format=flowed

a
b
--B
Content-Type: IMAGE/png; name=other.png
Content-Disposition: Inline; filename*=utf-8''%C3%BC.png
Content-Location: a.png
Content-ID: <a@x>
Content-Transfer-Encoding: Base64

AQI=
--B
Content-Type: message/rfc822

Subject: inner

x
--B
Content-Type: text/plain; charset=iso-8859-15
Content-Transfer-Encoding: quoted-printable

=A4
--B--
`, "\n", "\r\n")
	header, tree, err := message.Open([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	wantHeader := []message.Header{{Name: "Subject", Value: "Grüße"},
		{Name: "To", Value: "=?utf-8?Q?J=C3=BCrgen=2C_x?= <j@x.example>"},
		{Name: "List-Id", Value: "=?utf-8?Q?=C3=BC?= <a.example>"}, {Name: "X-Plain", Value: "a=?utf-8?Q?b?=c"},
		{Name: "Content-Type", Value: "Multipart/Mixed; boundary=B"}}
	if d := cmp.Diff(wantHeader, header); d != "" {
		t.Errorf("header (-want +got):\n%s", d)
	}
	want := &message.Node{Type: "multipart/mixed", Params: map[string]string{"boundary": "B"}}
	want.Parts = []*message.Node{
		{Type: "text/plain", Params: map[string]string{"charset": "US-ASCII", "format": "flowed"},
			Body: []byte("a\r\nb")},
		{Type: "image/png", Params: map[string]string{}, Disposition: "inline", Name: "ü.png", CID: "a@x",
			Location: "a.png", Body: []byte{1, 2}},
		{Type: "message/rfc822", Params: map[string]string{}, Body: []byte("Subject: inner\r\n\r\nx")},
		{Type: "text/plain", Params: map[string]string{"charset": "iso-8859-15"}, Body: []byte{0xa4}},
	}
	if d := cmp.Diff(want, tree); d != "" {
		t.Errorf("tree (-want +got):\n%s", d)
	}
	for i, want := range map[int]string{0: "a\nb", 3: "€"} {
		if text, err := tree.Parts[i].Text(); text != want || err != nil {
			t.Errorf("text %d is %q, %v", i, text, err)
		}
	}
	if _, _, err := message.Open([]byte(strings.ReplaceAll(raw, "AQI=", "AQI"))); err == nil ||
		err.Error() != "part 2: its base64 is broken" {
		t.Errorf("broken base64: %v", err)
	}
}
