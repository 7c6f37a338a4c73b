package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checked checks a text against the rule of its key and returns it in its usual form.
func checked(rule, text string) (usual, fault string) {
	switch rule {
	case "web address":
		return checkServiceURL(text)
	case "Redis address":
		return text, checkRedis(text)
	case "host:port":
		return text, checkListen(text)
	case "mail domain":
		text = strings.ToLower(text)
	}
	if r, ok := rules[rule]; ok && !r.holds(text) {
		return text, r.fault
	}
	return text, "" // without a rule, a path: the error comes when it is opened
}

// rules are the rules with one fault each.
var rules = map[string]struct {
	holds func(text string) bool
	fault string
}{
	"search address": {isSearch,
		"is not an address of OpenSearch or Elasticsearch; write one such as https://user:password@search.internal:9200"},
	"index name": {isIndex,
		"isn't an index name; use at most 100 lower-case letters, digits, - and _, and start with a letter or digit"},
	"mail domain":   {isDomain, "isn't a mail domain; write one such as bounce.example.com"},
	"email address": {isAddress, "isn't an email address; write one such as bounces@example.com"},
	"socket": {isSocket,
		"is neither the path of a socket nor an address; write one such as /run/postroom/bounce.sock, or 127.0.0.1:24"},
	// As long as the keys derived from it.
	secretRule: {func(text string) bool { return len(text) >= 32 },
		"is too short; use at least 32 bytes, for example from: openssl rand -hex 32"},
	// So long it cannot be guessed over the network, even if it consists of words.
	tokenRule: {func(text string) bool { return len(text) >= 16 && !strings.ContainsFunc(text, isOutsideToken) },
		"isn't a safe token; use at least 16 printable ASCII characters without spaces, for example from: openssl rand -hex 32"},
}

const (
	secretRule = "32 bytes or more"
	tokenRule  = "16 characters or more"
)

func isOutsideToken(c rune) bool { return c <= ' ' || c > '~' }

func checkListen(text string) string {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return "is not an address to listen on; write host:port, such as 127.0.0.1:3000, or :3000 for every network"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "has no valid port; write a number from 0 to 65535 after the colon"
	}
	return ""
}

// checkServiceURL also removes a slash at the end, so that paths can be appended.
func checkServiceURL(text string) (usual, fault string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return text, "is not a web address; write one such as https://mail.example.com"
	case u.User != nil:
		return text, "must not contain credentials, because recipients see it"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return text, "must end with its host or path; remove everything from ? or # on"
	}
	return strings.TrimRight(text, "/"), ""
}

// checkRedis checks the scheme and that something follows it. redisdb parses the rest and checks
// certificates.
func checkRedis(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if kind := strings.TrimSuffix(strings.TrimSuffix(scheme, "+sentinel"), "+cluster"); kind != "redis" &&
		kind != "rediss" && scheme != "unix" {
		return "isn't a Redis address; start it with redis://, rediss://, redis+sentinel://, redis+cluster:// or unix://"
	}
	place, _, _ := strings.Cut(rest, "?")
	if scheme != "unix" {
		place, _, _ = strings.Cut(place, "/")
	}
	if strings.Trim(place[strings.LastIndex(place, "@")+1:], "/") == "" {
		return "names no host; write one such as redis://localhost:6379, or unix:///run/redis.sock"
	}
	return ""
}

// isSearch reports whether text is a list of addresses of search servers.
func isSearch(text string) bool {
	for node := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(node))
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" ||
			u.Fragment != "" {
			return false
		}
	}
	return true
}

// nameLetters are the letters of indexes and, in lower case, of domains.
const nameLetters = "abcdefghijklmnopqrstuvwxyz0123456789-"

// isIndex allows what OpenSearch and Elasticsearch allow in names of indexes, with room for a suffix.
func isIndex(text string) bool {
	return len(text) <= 100 && strings.Trim(text, nameLetters+"_") == "" && strings.TrimLeft(text, "-_") == text
}

// maxReturnDomain leaves room for a return path of 64 octets in the 254 of an address.
const maxReturnDomain = 189

// isDomain requires a name as DNS has it: non-ASCII letters must be written in their ASCII form.
func isDomain(text string) bool {
	labels := strings.Split(strings.ToLower(text), ".")
	return len(text) <= maxReturnDomain && len(labels) > 1 &&
		!slices.ContainsFunc(labels, func(label string) bool {
			return label == "" || len(label) > 63 || strings.Trim(label, nameLetters) != "" ||
				strings.Trim(label, "-") != label
		})
}

func isAddress(text string) bool {
	at := strings.LastIndexByte(text, '@')
	return at >= 1 && at <= 64 && !strings.ContainsAny(text, " <>,") && isDomain(text[at+1:])
}

func isSocket(text string) bool { return strings.Contains(text, "/") || checkListen(text) == "" }
