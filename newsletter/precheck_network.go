package newsletter

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	netmail "net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/idna"
	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/maildns"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox"
)

const (
	askFor    = 5 * time.Second // how long the DNS or a link has to answer
	mostLinks = 30              // links that are asked
	askAtOnce = 5
)

// ask asks the DNS about the sender of an email, and the links of its content whether they answer.
func (e *precheck) ask(ctx context.Context, mailing *outbox.Mailing, m *sample, content api.Campaign,
	people []audience.Person) error {
	if e.campaigns.DNS != nil {
		limited, cancel := context.WithTimeout(ctx, askFor)
		e.askDNS(limited, mailing.Content().From.Address, m.raw)
		cancel()
	}
	if e.campaigns.Web == nil {
		return nil
	}
	sh := shared(content, "", e.one.Bound)
	sh.TrackClicks = new(bool) // else the links lead to us
	plain, err := e.campaigns.Outbox.Mailings.Mailing(ctx, sh)
	if err != nil {
		return err
	}
	words, _, err := e.campaigns.written(ctx, plain, e.one, people[0])
	if fault.Is(err, fault.Unprocessable) {
		return nil // the person lacks a variable, which was reported
	}
	if err == nil {
		e.askLinks(ctx, linksOf(words.HTML, e.campaigns.opts.ServiceURL()))
	}
	return err
}

// askDNS looks for what large receivers require from bulk senders: a signature whose key is published, and a
// DMARC record for the domain of From.
func (e *precheck) askDNS(ctx context.Context, from string, raw []byte) {
	_, domain, _ := strings.Cut(from, "@")
	domain, err := idna.Lookup.ToASCII(domain)
	if err == nil {
		err = maildns.Answers(ctx, e.campaigns.DNS)
	}
	if err != nil {
		e.warn("DNSAway", fmt.Sprintf("DKIM and DMARC of %s were not looked up: the DNS can't be asked: %v", domain,
			err))
		return
	}
	e.askDKIM(ctx, domain, raw)
	name, records, err := maildns.DMARC(ctx, e.campaigns.DNS, domain)
	switch {
	case err != nil:
		e.warn("DNSAway", fmt.Sprintf("%s was not looked up: %v", name, err))
	case len(records) == 0:
		e.warn("NoDMARC", "There is no DMARC record "+name+": large receivers refuse newsletters without one")
	case len(records) > 1:
		e.warn("NoDMARC", name+" has several records, which count as none (RFC 7489 section 6.6.3)")
	}
}

// askDKIM compares an email's signatures with the published keys.
func (e *precheck) askDKIM(ctx context.Context, domain string, raw []byte) {
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return // it was written here
	}
	aligned := false
	for _, signature := range m.Header["Dkim-Signature"] {
		tags, _, err := maildns.Tags(signature)
		if err != nil {
			continue // receivers can't read it either
		}
		signer, selector := tags["d"], tags["s"]
		aligned = aligned || signer == domain || strings.HasSuffix(domain, "."+signer)
		name := dkim.RecordName(selector, signer)
		records, err := maildns.TXT(ctx, e.campaigns.DNS, name, "")
		switch {
		case err != nil:
			e.warn("DNSAway", fmt.Sprintf("%s was not looked up: %v", name, err))
		case len(records) != 1:
			e.warn("NoDKIM", fmt.Sprintf("%s has %d TXT records, and must have one: receivers can't verify its signature",
				name, len(records)))
		default:
			if _, err := dkim.CheckRecord(records[0], nil); err != nil {
				e.warn("NoDKIM", fmt.Sprintf("%s %v", name, err))
			}
		}
	}
	if !aligned {
		e.warn("NoDKIM", "It is not signed here for "+domain+": its relay must, or large receivers refuse it")
	}
}

// linksOf returns the web addresses of links and images on a page, except for addresses below our own.
func linksOf(page, own string) []string {
	var all []string
	for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
		t := z.Token()
		if t.Type != html.StartTagToken && t.Type != html.SelfClosingTagToken {
			continue
		}
		for _, a := range t.Attr {
			link := strings.TrimSpace(a.Val)
			if a.Key != map[string]string{"a": "href", "area": "href", "img": "src"}[t.Data] ||
				!strings.HasPrefix(link, "https://") && !strings.HasPrefix(link, "http://") ||
				own != "" && strings.HasPrefix(link, own) || slices.Contains(all, link) {
				continue
			}
			all = append(all, link)
		}
	}
	return all
}

// askLinks warns of links that do not answer.
func (e *precheck) askLinks(ctx context.Context, all []string) {
	if len(all) > mostLinks {
		e.warn("Links", fmt.Sprintf("It has %d links; the first %d were asked", len(all), mostLinks))
		all = all[:mostLinks]
	}
	var mu sync.Mutex
	wrong := map[string]string{}
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for _, link := range all {
		group.Go(func() error {
			if why := e.askLink(ctx, link); why != "" {
				mu.Lock()
				defer mu.Unlock()
				wrong[link] = why
			}
			return nil
		})
	}
	_ = group.Wait() // nothing returns an error
	for _, link := range all {
		if why := wrong[link]; why != "" {
			e.warn("Link", cut(link)+" "+why)
		}
	}
}

// askLink returns why a link doesn't work, or "". It uses GET for servers that don't support HEAD.
func (e *precheck) askLink(ctx context.Context, link string) string {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	why := ""
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		req, err := http.NewRequestWithContext(ctx, method, link, nil)
		if err != nil {
			return "is not a web address"
		}
		res, err := e.campaigns.Web.Do(req)
		if err != nil {
			return "does not answer"
		}
		_ = res.Body.Close()
		if res.StatusCode < http.StatusBadRequest {
			return ""
		}
		why = fmt.Sprintf("answers %d", res.StatusCode)
	}
	return why
}
