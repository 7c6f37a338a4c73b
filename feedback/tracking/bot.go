package tracking

import (
	"net/http"
	"strings"
	"time"
)

// Why a hit is a program's, as events say it (botReason).
const (
	// ApplePrivacy is Apple Mail Privacy Protection: all pictures are fetched when the mail arrives, by an agent named Mozilla/5.0.
	ApplePrivacy = "apple_privacy"
	// GmailPrefetch is Gmail fetching pictures before the mail is opened, by what says it is an Edge of 2015.
	GmailPrefetch = "gmail_prefetch"
	// NoAgent is a request that does not say what sent it. Browsers and the picture proxies of mail providers do.
	NoAgent = "no_agent"
	// Crawler is an agent that calls itself a program.
	Crawler = "crawler"
	// TooSoon is a click before anybody can have read the mail: within two seconds of its acceptance.
	TooSoon = "too_soon"
	// Burst is one of three or more different links of a mail that were followed within two seconds, or a click within ten seconds of it.
	Burst = "burst"
)

// tooSoon is how long after its acceptance a click on a link of a message is a program's: a message needs longer to be delivered, noticed
// and read. Scanners of mail gateways follow links before they deliver the mail at all.
const tooSoon = 2 * time.Second

// botRule returns the name of the rule that marks a hit as a bot's, or "" for a person's. age is the time since the message was accepted.
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

// isProxy reports whether a request comes from the picture proxy of a mail provider, which fetches a picture when its reader opens the mail.
func isProxy(agent string) bool {
	return strings.Contains(agent, "GoogleImageProxy") || strings.Contains(agent, "YahooMailProxy")
}

// crawlers are pieces of what programs call themselves, in lower case: what they do, or the tool they are built with.
var crawlers = []string{
	"crawl", "spider", "slurp", "scan", "preview", "link check", "linkcheck", "urlcheck", "existence discovery", "monitoring", "uptime",
	"validator", "archiver", "facebookexternalhit", "headless", "phantomjs", "puppeteer", "playwright", "selenium", "lighthouse",
	"curl/", "wget", "python", "go-http-client", "libwww", "httpclient", "java/", "ruby", "perl", "php/", "axios", "node-fetch", "undici",
	"proofpoint", "mimecast", "barracuda", "safelinks", "urldefense", "http://", "https://",
}

// isCrawler reports whether an agent calls itself a program. An address in it is where the operator of a crawler explains itself.
func isCrawler(agent string) bool {
	agent = strings.ToLower(agent)
	if isBot(agent) {
		return true
	}
	for _, piece := range crawlers {
		if strings.Contains(agent, piece) {
			return true
		}
	}
	return false
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

// prefetches reports whether a browser asks ahead of its user, who may never look.
func prefetches(h http.Header) bool {
	for _, name := range [...]string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		purpose := strings.ToLower(h.Get(name))
		if strings.Contains(purpose, "prefetch") || strings.Contains(purpose, "prerender") || strings.Contains(purpose, "preview") {
			return true
		}
	}
	return false
}

// wantsPrivacy reports whether a browser asks not to be followed.
func wantsPrivacy(h http.Header) bool { return h.Get("Sec-Gpc") == "1" || h.Get("Dnt") == "1" }
