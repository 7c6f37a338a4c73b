package maildns

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// zone has TXT records by name. If a name has an error instead of records, it can't be looked up.
type zone map[string]any

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	switch found := z[strings.TrimSuffix(name, ".")].(type) {
	case error:
		return nil, found
	case []string:
		return slices.Clone(found), nil
	}
	return nil, &net.DNSError{Name: name, IsNotFound: true}
}

func (zone) LookupNS(context.Context, string) ([]*net.NS, error) { return nil, nil }

// TestDMARC: the domain's record precedes its organizational domain's.
func TestDMARC(t *testing.T) {
	t.Parallel()
	away := errors.New("no route")
	for _, c := range []struct {
		name, domain string
		z            zone
		at           string
		want         []string
		err          error
	}{
		{"its own", "news.example.co.uk", zone{"_dmarc.news.example.co.uk": []string{"other",
			"v=DMARC1; p=none"},
			"_dmarc.example.co.uk": []string{"v=DMARC1; p=reject"}}, "_dmarc.news.example.co.uk",
			[]string{"v=DMARC1; p=none"}, nil},
		{"of the organization", "a.news.example.co.uk", zone{"_dmarc.example.co.uk": []string{
			"v=dmarc1;p=reject"}},
			"_dmarc.example.co.uk", []string{"v=dmarc1;p=reject"}, nil},
		{"none", "example.com", zone{"_dmarc.example.com": []string{"v=DMARC10"}}, "_dmarc.example.com", nil,
			nil},
		{"no answer", "example.com", zone{"_dmarc.example.com": away}, "_dmarc.example.com", nil, away},
	} {
		at, got, err := DMARC(t.Context(), c.z, c.domain)
		if diff := cmp.Diff(c.want, got); at != c.at || !errors.Is(err, c.err) || diff != "" {
			t.Errorf("%s: at %s, %v (-want +got):\n%s", c.name, at, err, diff)
		}
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list, first string
		want        map[string]string // nil if it is refused
	}{
		{"v=DKIM1; k=rsa; p=MII=", "v", map[string]string{"v": "DKIM1", "k": "rsa", "p": "MII="}},
		{" p = ;\r\n\tt=y:s ;", "p", map[string]string{"p": "", "t": "y:s"}},
		{"", "", map[string]string{}},
		{"v=DKIM1; p=a; p=b", "", nil},
		{"v=DKIM1; p", "", nil},
		{"=x", "", nil},
	} {
		got, first, err := Tags(c.list)
		if diff := cmp.Diff(c.want, got); diff != "" || first != c.first || (err != nil) != (c.want == nil) {
			t.Errorf("%q: the first is %q, %v (-want +got):\n%s", c.list, first, err, diff)
		}
	}
}
