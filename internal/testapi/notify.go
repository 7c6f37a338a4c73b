package testapi

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Event is what a webhook reports about a delivery.
type Event string

// The events of [Server.Notify].
const (
	Delivered Event = "delivered"
	Bounced   Event = "bounced" // the address doesn't exist
)

// Notify posts a webhook about a delivery to an address, and returns the status of the answer. Providers that
// sign webhooks sign this one with the account's Secret (SendGrid: with the key of [Server.VerificationKey]).
// The others have a token in the query of the address. Amazon's can't be made here: its certificate is
// Amazon's.
func (s *Server) Notify(ctx context.Context, to string, what Event, d Delivery) (int, error) {
	return s.notify(ctx, to, http.Header{}, what, d)
}

// Report posts a webhook about a delivery to each address that was set up with the provider's API, with its
// secret. It returns the statuses of the answers.
func (s *Server) Report(ctx context.Context, what Event, d Delivery) ([]int, error) {
	to := map[string]http.Header{}
	for _, h := range s.allHooks() {
		header := http.Header{}
		list, _ := h["HttpHeaders"].([]any)
		for _, f := range list {
			header.Set(fmt.Sprint(f.(object)["Name"]), fmt.Sprint(f.(object)["Value"]))
		}
		if auth, bearer := h["auth"].(object); bearer {
			header.Set("Authorization", "Bearer "+fmt.Sprint(auth["token"]))
		}
		if auth, basic := h["auth_credentials"].(object); basic {
			header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString(
				fmt.Append(nil, auth["username"], ":", auth["password"])))
		}
		for _, name := range []string{"Url", "url", "target", "endpoint"} {
			if address, named := h[name].(string); named {
				to[address] = header
			}
		}
		urls, _ := h["urls"].([]string)
		for _, address := range urls {
			to[address] = header
		}
	}
	var all []int
	for address, header := range to {
		status, err := s.notify(ctx, address, header, what, d)
		if err != nil {
			return all, err
		}
		all = append(all, status)
	}
	return all, nil
}

func (s *Server) notify(ctx context.Context, to string, header http.Header, what Event, d Delivery) (int,
	error) {
	s.mu.Lock()
	o := s.options
	s.mu.Unlock()
	form, ok := events[s.Name]
	if !ok {
		return 0, fmt.Errorf("no webhooks of %s can be made", s.Name)
	}
	header.Set("Content-Type", "application/json")
	now := o.Now()
	made := form(what, d, now)
	s.record(what, d, now, made)
	body, err := json.Marshal(made)
	if err != nil {
		return 0, err
	}
	switch s.Name {
	case "resend", "http":
		err = signStandard(header, o.Secret, now, body)
	case "sendgrid":
		err = s.signSendgrid(header, now, body)
	case "mailgun":
		body, err = signMailgun(o.Secret, now, body)
	case "mandrill":
		mac := hmac.New(sha1.New, []byte(o.Secret))
		mac.Write([]byte(to + "mandrill_events" + string(body)))
		header.Set("X-Mandrill-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		body = []byte(url.Values{"mandrill_events": {string(body)}}.Encode())
	}
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header = header
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

const (
	unknown = "550 5.1.1 The email account that you tried to reach does not exist."
	accept  = "250 2.0.0 OK"
)

// events makes the body of each provider's webhook.
var events = map[string]func(Event, Delivery, time.Time) any{
	"http": func(what Event, d Delivery, now time.Time) any {
		e := object{"type": what, "id": uuid(), "providerMessageId": d.ID, "recipient": d.To,
			"time": now.UTC().Format(time.RFC3339), "metadata": d.Metadata}
		if what == Bounced {
			e["bounce"], e["diagnostic"] = "hard", unknown
		}
		return e
	},
	"postmark": func(what Event, d Delivery, now time.Time) any {
		at := now.UTC().Format(time.RFC3339)
		e := object{"RecordType": "Delivery", "ServerID": 23, "MessageID": d.ID, "Recipient": d.To,
			"Details": accept, "DeliveredAt": at, "Metadata": d.Metadata, "MessageStream": "outbound"}
		if what == Bounced {
			e = object{"RecordType": "Bounce", "ID": now.UnixNano(), "Type": "HardBounce", "TypeCode": 1,
				"MessageID": d.ID, "Email": d.To, "From": d.From, "Details": "smtp;" + unknown, "BouncedAt": at,
				"Inactive": true, "Metadata": d.Metadata, "MessageStream": "outbound"}
		}
		return e
	},
	"resend": func(what Event, d Delivery, now time.Time) any {
		at := now.UTC().Format(time.RFC3339)
		data := object{"email_id": d.ID, "created_at": at, "from": d.From, "to": []string{d.To}, "tags": d.Metadata}
		if what == Bounced {
			data["bounce"] = object{"type": "Permanent", "subType": "General", "message": unknown}
		}
		return object{"type": "email." + what, "created_at": at, "data": data}
	},
	"sendgrid": func(what Event, d Delivery, now time.Time) any {
		e := object{"event": "delivered", "email": d.To, "timestamp": now.Unix(), "response": accept,
			"sg_event_id": uuid(), "sg_message_id": d.ID + ".filter0425p1mdw1.13037.57168B4A1D.0"}
		if what == Bounced {
			e["event"], e["type"], e["reason"], e["status"] = "bounce", "bounce", unknown, "5.1.1"
		}
		for name, value := range d.Metadata {
			e[name] = value
		}
		return []any{e}
	},
	"mailgun": func(what Event, d Delivery, now time.Time) any {
		e := object{"event": "delivered", "id": uuid(), "recipient": d.To, "user-variables": d.Metadata,
			"timestamp": float64(now.UnixMicro()) / 1e6, "delivery-status": object{"code": 250, "message": accept},
			"message": object{"headers": object{"message-id": d.ID[1 : len(d.ID)-1], "to": d.To}}}
		if what == Bounced {
			e["event"], e["severity"], e["reason"] = "failed", "permanent", "bounce"
			e["delivery-status"] = object{"code": 550, "message": unknown}
		}
		return object{"event-data": e}
	},
	"mailjet": func(what Event, d Delivery, now time.Time) any {
		e := object{"event": "sent", "time": now.Unix(), "MessageID": json.Number(d.ID), "email": d.To,
			"CustomID": d.Metadata["postroom_id"], "smtp_reply": accept}
		if what == Bounced {
			e["event"], e["hard_bounce"] = "bounce", true
			e["error"], e["error_related_to"] = "user unknown", "recipient"
		}
		return []any{e}
	},
	"sparkpost": func(what Event, d Delivery, now time.Time) any {
		e := object{"type": "delivery", "event_id": uuid(), "message_id": uuid(), "transmission_id": d.ID,
			"rcpt_to": d.To, "rcpt_meta": d.Metadata, "timestamp": fmt.Sprint(now.Unix())}
		if what == Bounced {
			e["type"], e["bounce_class"], e["error_code"], e["raw_reason"] = "bounce", "10", "550", unknown
		}
		return []any{object{"msys": object{"message_event": e}}}
	},
	"brevo": func(what Event, d Delivery, now time.Time) any {
		custom, _ := json.Marshal(d.Metadata)
		e := object{"event": "delivered", "email": d.To, "ts_epoch": now.UnixMilli(), "message-id": d.ID,
			"X-Mailin-custom": string(custom)}
		if what == Bounced {
			e["event"], e["reason"] = "hard_bounce", unknown
		}
		return e
	},
	"mandrill": func(what Event, d Delivery, now time.Time) any {
		msg := object{"ts": now.Unix(), "email": d.To, "sender": d.From, "_id": d.ID, "metadata": d.Metadata}
		e := object{"event": "delivered", "_id": d.ID, "ts": now.Unix(), "msg": msg}
		if what == Bounced {
			e["event"], msg["bounce_description"], msg["diag"] = "hard_bounce", "bad_mailbox", "smtp;"+unknown
		}
		return []any{e}
	},
}

func signStandard(header http.Header, secret string, now time.Time, body []byte) error {
	hook, err := standard.NewWebhook(secret)
	if err != nil {
		return err
	}
	id := "msg_" + uuid()
	signature, err := hook.Sign(id, now, body)
	for name, value := range map[string]string{"Id": id, "Timestamp": fmt.Sprint(now.Unix()),
		"Signature": signature} {
		header.Set("Webhook-"+name, value)
	}
	return err
}

// signMailgun adds a signature that covers a time and a token.
func signMailgun(secret string, now time.Time, body []byte) ([]byte, error) {
	var e object
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	at, token := fmt.Sprint(now.Unix()), uuid()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + token))
	e["signature"] = object{"timestamp": at, "token": token, "signature": hex.EncodeToString(mac.Sum(nil))}
	return json.Marshal(e)
}

func (s *Server) signSendgrid(header http.Header, now time.Time, body []byte) error {
	at := fmt.Sprint(now.Unix())
	hash := sha256.Sum256(append([]byte(at), body...))
	signature, err := ecdsa.SignASN1(rand.Reader, s.webhookKey(), hash[:])
	header.Set("X-Twilio-Email-Event-Webhook-Timestamp", at)
	header.Set("X-Twilio-Email-Event-Webhook-Signature", base64.StdEncoding.EncodeToString(signature))
	return err
}

// VerificationKey returns the key that verifies SendGrid's webhooks, as base64.
func (s *Server) VerificationKey() string {
	der, err := x509.MarshalPKIXPublicKey(&s.webhookKey().PublicKey)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

func (s *Server) webhookKey() *ecdsa.PrivateKey {
	s.signer.Do(func() {
		var err error
		if s.private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			panic(err)
		}
	})
	return s.private
}
