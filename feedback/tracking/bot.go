package tracking

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// The rules that mark a hit as a bot's, as events name them (botReason).
const (
	// ApplePrivacy is Apple Mail Privacy Protection, which fetches all pictures on arrival as agent Mozilla/5.0.
	ApplePrivacy = "apple_privacy"
	// GmailPrefetch is Gmail fetching pictures before the mail is opened, as an Edge of 2015.
	GmailPrefetch = "gmail_prefetch"
	// NoAgent is a request without User-Agent. Browsers and the picture proxies of mail providers send one.
	NoAgent = "no_agent"
	// Crawler is an agent that names itself a program.
	Crawler = "crawler"
	// TooSoon is a click within two seconds of the acceptance of the mail, before a person can have read it.
	TooSoon = "too_soon"
	// Burst is one of three or more different links followed within two seconds, or a click within ten seconds
	// of such links.
	Burst = "burst"
)

// tooSoon is the age of a message below which a click is a bot's: delivery and reading take longer. Scanners
// of mail gateways follow links before they deliver the mail.
const tooSoon = 2 * time.Second

// botRule returns the name of the rule that marks a hit as a bot's, or "" for a person's. age is the time
// since the message was accepted.
func botRule(k kind, agent string, age time.Duration) string {
	switch {
	case isProxy(agent):
		return ""
	case agent == "Mozilla/5.0":
		return ApplePrivacy
	case strings.Contains(agent, "Chrome/42.0.2311.135") && strings.Contains(agent, "Edge/12.246 Mozilla/5.0"):
		return GmailPrefetch
	case strings.TrimSpace(agent) == "":
		return NoAgent
	case isCrawler(agent):
		return Crawler
	case k == clicked && age < tooSoon:
		return TooSoon
	}
	return ""
}

// isProxy reports whether agent is a mail provider's picture proxy, which fetches pictures when the mail is
// opened.
func isProxy(agent string) bool {
	return strings.Contains(agent, "GoogleImageProxy") || strings.Contains(agent, "YahooMailProxy")
}

// crawlers are parts of the names of programs, in lower case: their purpose, or the tool they are built with.
var crawlers = []string{
	"crawl", "spider", "slurp", "scan", "preview", "link check", "linkcheck", "urlcheck", "existence discovery",
	"monitoring", "uptime",
	"validator", "archiver", "facebookexternalhit", "headless", "phantomjs", "puppeteer", "playwright",
	"selenium", "lighthouse",
	"curl/", "wget", "python", "go-http-client", "libwww", "httpclient", "java/", "ruby", "perl", "php/",
	"axios", "node-fetch", "undici",
	"proofpoint", "mimecast", "barracuda", "safelinks", "urldefense", "http://", "https://",
}

// isCrawler reports whether an agent names itself a program. A URL in it points to the page of a crawler.
func isCrawler(agent string) bool {
	agent = strings.ToLower(agent)
	return isBot(agent) || slices.ContainsFunc(crawlers, func(part string) bool {
		return strings.Contains(agent, part)
	})
}

// isBot finds a word that ends in bot: Googlebot, bingbot/2.0. Cubot is a maker of telephones.
func isBot(agent string) bool {
	for rest := agent; ; {
		i := strings.Index(rest, "bot")
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len("bot"):]
		if !strings.HasSuffix(before, "cu") && (after == "" || after[0] < 'a' || after[0] > 'z') {
			return true
		}
		rest = after
	}
}

// prefetches reports whether a browser asks before its user does.
func prefetches(h http.Header) bool {
	for _, name := range [...]string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		purpose := strings.ToLower(h.Get(name))
		if strings.Contains(purpose, "prefetch") || strings.Contains(purpose, "prerender") ||
			strings.Contains(purpose, "preview") {
			return true
		}
	}
	return false
}

// wantsPrivacy reports whether a browser asks not to be followed.
func wantsPrivacy(h http.Header) bool { return h.Get("Sec-Gpc") == "1" || h.Get("Dnt") == "1" }
