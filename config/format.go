package config

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// checked checks a text against the rule of its key and returns it in its usual form.
func checked(rule, text string) (usual, fault string) {
	switch rule {
	case "host:port":
		return text, checkListen(text)
	case "web address":
		return checkServiceURL(text)
	case "Redis address":
		return text, checkRedis(text)
	case "search address":
		return text, checkSearch(text)
	case "index name":
		return text, checkIndex(text)
	case "mail domain":
		return strings.ToLower(text), checkDomain(text)
	case "email address":
		return text, checkAddress(text)
	case "socket":
		return text, checkSocket(text)
	case "32 bytes or more":
		return text, checkSecret(text)
	case "16 characters or more":
		return text, checkToken(text)
	}
	return text, "" // a path: the error comes when it is opened
}

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
		return text, "must not hold credentials: it is shown to everybody who gets mail"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return text, "must end with its host or path; remove what follows ? or #"
	}
	return strings.TrimRight(text, "/"), ""
}

// checkRedis checks the scheme and that something follows it. redisdb parses the rest and checks
// certificates.
func checkRedis(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if kind := strings.TrimSuffix(strings.TrimSuffix(scheme, "+sentinel"), "+cluster"); kind != "redis" &&
		kind != "rediss" && scheme != "unix" {
		return "is not an address of Redis; begin it with redis://, rediss://, redis+sentinel://, redis+cluster:// or unix://"
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

// checkSearch checks the addresses of the nodes of a search cluster.
func checkSearch(text string) string {
	for _, node := range strings.Split(text, ",") {
		u, err := url.Parse(strings.TrimSpace(node))
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" ||
			u.Fragment != "" {
			return "is not an address of OpenSearch or Elasticsearch; write one such as https://user:password@search.internal:9200"
		}
	}
	return ""
}

// checkIndex allows what OpenSearch and Elasticsearch allow in names of indexes, with room for a suffix.
func checkIndex(text string) string {
	if len(text) > 100 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" ||
		strings.HasPrefix(text, "-") || strings.HasPrefix(text, "_") {
		return "is no name of an index; use lower-case letters, digits, - and _, 100 at most, a letter or digit first"
	}
	return ""
}

// maxReturnDomain leaves room for a return path of 64 octets in the 254 of an address.
const maxReturnDomain = 189

// checkDomain requires a name as DNS has it: a name with non-ASCII letters must be written in its ASCII
// form.
func checkDomain(text string) string {
	labels := strings.Split(text, ".")
	wrong := len(text) > maxReturnDomain || len(labels) < 2
	for _, label := range labels {
		wrong = wrong || label == "" || len(label) > 63 ||
			strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
			strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-")
	}
	if wrong {
		return "is no domain of mail; write one such as bounce.example.com"
	}
	return ""
}

func checkAddress(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 1 || at > 64 || strings.ContainsAny(text, " <>,") || checkDomain(text[at+1:]) != "" {
		return "is no email address; write one such as bounces@example.com"
	}
	return ""
}

func checkSocket(text string) string {
	if strings.Contains(text, "/") {
		return ""
	}
	if checkListen(text) != "" {
		return "is neither the path of a socket nor an address; write one such as /run/postroom/bounce.sock, or 127.0.0.1:24"
	}
	return ""
}

// minSecret is the length of a secret in bytes: as long as the keys derived from it.
const minSecret = 32

func checkSecret(text string) string {
	if len(text) < minSecret {
		return "is too short: 32 bytes or more are needed; make one with: openssl rand -hex 32"
	}
	return ""
}

// minToken is the length of an admin token in characters. It cannot be guessed over the network even if it
// consists of words.
const minToken = 16

func checkToken(text string) string {
	if len(text) < minToken || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "is no safe token: 16 characters or more are needed, printable ASCII without spaces; make one with: openssl rand -hex 32"
	}
	return ""
}
