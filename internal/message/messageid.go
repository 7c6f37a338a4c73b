package message

import (
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Message ids are limited so that their line has at most 998 octets.
const (
	maxMessageID  = 996
	maxReferences = 20 // some servers refuse long References; threading needs the first and the latest
)

var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewMessageID returns a Message-ID with angle brackets: 160 random bits at the author's domain, in ASCII.
// Its letters survive mail programs that change case. It fails if the domain is invalid or random is
// exhausted.
func NewMessageID(fromDomain string, random io.Reader) (string, error) {
	domain, err := normalizeDomain(fromDomain)
	if err != nil {
		return "", fmt.Errorf("make a message id at %q: %w", fromDomain, err)
	}
	token, err := newToken(random)
	if err != nil {
		return "", fmt.Errorf("make a message id: %w", err)
	}
	return "<" + token + "@" + domain + ">", nil
}

func newToken(random io.Reader) (string, error) {
	var entropy [20]byte
	if _, err := io.ReadFull(random, entropy[:]); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return idAlphabet.EncodeToString(entropy[:]), nil
}

// messageID checks a message id for our own message and adds angle brackets.
func messageID(s string) (string, error) {
	id, err := referenceID(s)
	if err != nil {
		return "", err
	}
	left, right, found := strings.Cut(id[1:len(id)-1], "@")
	if !found || left == "" || right == "" || strings.Contains(right, "@") {
		return "", errors.New("is not a valid message id: it has to be like <id@domain>")
	}
	return id, nil
}

// referenceID checks a foreign message id, where the @ is optional, and adds angle brackets.
func referenceID(s string) (string, error) {
	id := strings.Trim(s, " ")
	if strings.HasPrefix(id, "<") && strings.HasSuffix(id, ">") && len(id) > 1 {
		id = id[1 : len(id)-1]
	}
	if id == "" {
		return "", errors.New("is not a valid message id: it is empty")
	}
	if len(id)+2 > maxMessageID {
		return "", fmt.Errorf("is not a valid message id: it is longer than %d octets", maxMessageID)
	}
	if strings.ContainsFunc(id, notPrintable) || strings.ContainsAny(id, "<>") {
		return "", errors.New("is not a valid message id: only printable ASCII without blanks and <> may be in it")
	}
	return "<" + id + ">", nil
}

// shortenReferences keeps the first id and the latest ones.
func shortenReferences(ids []string) []string {
	if len(ids) <= maxReferences {
		return ids
	}
	return slices.Concat(ids[:1], ids[len(ids)-maxReferences+1:])
}
