package provider

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// topic is the ARN of an accepted SNS topic. Anyone with an Amazon account can point a topic here, and Amazon
// signs its messages, so the ARN is part of the proof.
type topic string

var topicARN = regexp.MustCompile(`^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]+:[A-Za-z0-9_.-]{1,256}$`)

func topicKey(arn string) (key, error) {
	if !topicARN.MatchString(arn) {
		return nil, errors.New("must be the ARN of an SNS topic, such as arn:aws:sns:eu-west-1:123456789012:mail-events")
	}
	return topic(arn), nil
}

func (t topic) verify(ctx context.Context, v *Verifier, r *incoming, now time.Time) error {
	if !r.parsed {
		r.parsed = true
		r.event, r.err = parseObject(r.Body)
	}
	if r.err != nil {
		return missing("SNS message")
	}
	o := r.event
	if subtle.ConstantTimeCompare([]byte(o.text("TopicArn")), []byte(t)) == 0 {
		return fault.New(fault.Unauthorized, codeTopic, "The SNS topic isn't accepted")
	}
	at, err := time.Parse(time.RFC3339Nano, o.text("Timestamp"))
	if err != nil {
		return missing("Timestamp")
	}
	if err := v.fresh(at, now); err != nil { // before a certificate is fetched for it
		return err
	}
	signed, ok := snsSigned(o)
	signature, err := base64.StdEncoding.DecodeString(o.text("Signature"))
	if !ok || err != nil || len(signature) == 0 {
		return missing("SNS signature")
	}
	from, ok := snsAddress(o.text("SigningCertURL"))
	if !ok || from.RawQuery != "" || !strings.HasSuffix(from.Path, ".pem") {
		return refusedCertificate(errors.New("its address is not one of SNS"))
	}
	public, err := v.certs.key(ctx, from.String(), now)
	if err != nil {
		return err
	}
	return snsVerify(public, o.text("SignatureVersion"), signed, signature)
}

// snsVerify checks the signature. Version 1 is SHA-1, still Amazon's default. To forge it takes a second
// preimage, not a collision, because Amazon chooses most of the text.
func snsVerify(public *rsa.PublicKey, version, signed string, signature []byte) error {
	var err error
	switch version {
	case "1":
		sum := sha1.Sum([]byte(signed))
		err = rsa.VerifyPKCS1v15(public, crypto.SHA1, sum[:], signature)
	case "2":
		sum := sha256.Sum256([]byte(signed))
		err = rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature)
	default:
		return missing("SignatureVersion")
	}
	if err != nil {
		return mismatch()
	}
	return nil
}

// snsSigned returns the text that SNS signs: names and values of certain fields, each with a line feed,
// sorted by name. Subject is optional. ok is false if a field isn't a string.
func snsSigned(o object) (string, bool) {
	names := []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	switch o.text("Type") {
	case "Notification":
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		names = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	default:
		return "", false
	}
	var b strings.Builder
	for _, name := range names {
		if name == "Subject" && o[name] == nil {
			continue
		}
		value, ok := o[name].(string)
		if !ok {
			return "", false
		}
		b.WriteString(name + "\n" + value + "\n")
	}
	return b.String(), true
}

// confirmation returns the address that confirms a subscription, if it is at SNS and for the topic of the
// request.
func confirmation(o object) (*Confirmation, error) {
	u, ok := snsAddress(o.text("SubscribeURL"))
	if !ok {
		return nil, wrongBody("The SubscribeURL is not an address of SNS")
	}
	q := u.Query()
	if (u.Path != "/" && u.Path != "") || q.Get("Action") != "ConfirmSubscription" || q.Get("TopicArn") == "" ||
		q.Get("TopicArn") != o.text("TopicArn") {
		return nil, wrongBody("The SubscribeURL doesn't confirm a subscription to its topic")
	}
	return &Confirmation{URL: u.String(), Topic: o.text("TopicArn")}, nil
}
