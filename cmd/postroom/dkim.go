package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/internal/maildns"
)

func dkimVerbs() []verb {
	return []verb{
		{name: "generate", help: "Generate a key on this machine, and print its DNS record.", run: &dkimGenerateCmd{}},
		{name: "check", help: "Compare the published DNS record with a key.", run: &dkimCheckCmd{}},
	}
}

type dkimName struct {
	Domain   string `required:"" placeholder:"NAME" help:"Domain that mail is from, such as example.com."`
	Selector string `required:"" placeholder:"NAME" help:"Selector, chosen by you, such as s1; a new key takes a new one."`
}

// checked returns both names in normal form.
func (n dkimName) checked() (dkimName, error) {
	domain, err := dkim.CheckDomain(n.Domain)
	if err != nil {
		return n, usage("--domain: %q %v", n.Domain, err)
	}
	selector, err := dkim.CheckSelector(n.Selector)
	if err != nil {
		return n, usage("--selector: %q %v", n.Selector, err)
	}
	return dkimName{domain, selector}, nil
}

type dkimGenerateCmd struct {
	dkimName
	Type string `enum:"rsa,ed25519" default:"rsa" help:"rsa, or ed25519, which some receivers can't verify yet."`
	Bits int    `placeholder:"N" help:"Size of an RSA key, 2048 to 4096. Default: 2048."`
	Out  string `placeholder:"FILE" help:"File for the private key, which must not exist. Default: standard output."`
	JSON bool   `name:"json" help:"Print JSON, for programs."`
}

// madeKey is what generate prints for programs.
type madeKey struct {
	Domain     string `json:"domain"`
	Selector   string `json:"selector"`
	PrivateKey string `json:"privateKey,omitempty"` // unless it is in File
	File       string `json:"file,omitempty"`
	Name       string `json:"name"`   // of the TXT record
	Record     string `json:"record"` // its value
	Zone       string `json:"zone"`   // both as a line of a zone file
}

// Run makes a key. Without --out it is alone on standard output, so that it can be piped to where it belongs.
func (g *dkimGenerateCmd) Run(con *console) error {
	name, err := g.checked()
	if err != nil {
		return err
	}
	text, err := dkim.Generate(g.Type, g.Bits)
	if err != nil {
		return usage("--bits: %v", err)
	}
	key, err := dkim.Parse(text)
	if err != nil {
		return err
	}
	record, err := dkim.Record(key)
	if err != nil {
		return err
	}
	made := madeKey{
		Domain: name.Domain, Selector: name.Selector, File: g.Out,
		Name: dkim.RecordName(name.Selector, name.Domain), Record: record, Zone: dkim.ZoneLine(name.Selector,
			name.Domain, record),
	}
	if g.Out == "" {
		made.PrivateKey = text
	} else if err := writeNew(g.Out, text); err != nil {
		return err
	}
	if g.JSON {
		return con.printJSON(made)
	}
	print := con.say
	if g.Out == "" {
		con.say("%s", strings.TrimSpace(text))
		print = con.note
	} else {
		con.note("the private key is in %s; keep it secret", g.Out)
	}
	print("Publish this TXT record:\n\n%s\n%s\n\nAs a line of a zone file:\n\n%s", made.Name, made.Record,
		made.Zone)
	con.note("\nThen: postroom dkim check --domain %s --selector %s", made.Domain, made.Selector)
	return nil
}

// writeNew writes a secret to a file that did not exist, for its owner only.
func writeNew(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage("--out: %s exists already, and mail may be signed with it: choose another name", name)
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// dkimCheckCmd compares the DNS with a key.
type dkimCheckCmd struct {
	dkimName
	Key  string `placeholder:"FILE" help:"Private key in PEM; - is standard input. Default: the record is only checked to be one."`
	JSON bool   `name:"json" help:"Print JSON, for programs."`
}

// Run asks the DNS from this machine.
func (c *dkimCheckCmd) Run(ctx context.Context, con *console) error {
	name, err := c.checked()
	if err != nil {
		return err
	}
	var key *dkim.Key
	if c.Key != "" {
		if _, key, err = readKey(con, c.Key); err != nil {
			return err
		}
	}
	found, err := name.look(ctx, net.DefaultResolver, key)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := con.printJSON(found); err != nil {
			return err
		}
	}
	switch {
	case found.Problem != "" && c.JSON:
		return errReported
	case found.Problem != "":
		return fmt.Errorf("%s %s", found.Name, found.Problem)
	case !c.JSON:
		found.good(con, key != nil)
	}
	return nil
}

// foundKey is the result of check as JSON.
type foundKey struct {
	Name    string `json:"name"`
	Record  string `json:"record,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Bits    int    `json:"bits,omitempty"`
	Testing bool   `json:"testing,omitempty"`
	Problem string `json:"problem,omitempty"` // none: receivers can verify
}

// look looks up the record. An error means that the DNS did not answer, not that the record is wrong.
func (n dkimName) look(ctx context.Context, dns resolver, key *dkim.Key) (foundKey, error) {
	found := foundKey{Name: dkim.RecordName(n.Selector, n.Domain)}
	unasked := func(err error) error {
		return fmt.Errorf("not checked, because the DNS of the internet can't be asked from here: %w; run this where it can", err)
	}
	if err := maildns.Answers(ctx, dns); err != nil {
		return found, unasked(err)
	}
	records, err := maildns.TXT(ctx, dns, found.Name, "")
	if err != nil {
		return found, unasked(err)
	}
	switch len(records) {
	case 0:
		found.Problem = "has no TXT record: publish the one that postroom dkim generate printed; a new one may take an hour to be seen"
		return found, nil
	case 1:
	default:
		found.Problem = fmt.Sprintf("has %d TXT records, and receivers may use any of them: keep only one", len(records))
		return found, nil
	}
	found.Record = records[0]
	published, err := dkim.CheckRecord(found.Record, key)
	found.Kind, found.Bits, found.Testing = published.Kind, published.Bits, published.Testing
	if err != nil {
		found.Problem = err.Error()
	}
	return found, nil
}

// good prints a result without a problem.
func (f foundKey) good(con *console, compared bool) {
	what := "has a key"
	if compared {
		what = "publishes this key"
	}
	con.say("%s %s: %s of %d bits", f.Name, what, f.Kind, f.Bits)
	if f.Testing {
		con.note("it says that it is a test (t=y): receivers take failed signatures as if there were none; take t=y out when all is well")
	}
	if f.Kind == dkim.RSA && f.Bits < dkim.MinBits {
		con.note("the key is short: Postroom signs with %d bits and more, and some receivers want that",
			dkim.MinBits)
	}
}

// readKey reads a private key from a file, or from standard input.
func readKey(con *console, name string) (string, *dkim.Key, error) {
	text, err := con.read("@"+name, name == "-")
	if err != nil {
		return "", nil, fmt.Errorf("--key: %w", err)
	}
	key, err := dkim.Parse(string(text))
	if err != nil {
		return "", nil, usage("--key: %s %v", name, err)
	}
	return string(text), key, nil
}
