package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
)

// ended is what stays of a message in the log once it is gone from the outbox: everything but its content.
type ended struct {
	Envelope  envelope `json:"envelope"`
	Status    status   `json:"status"`
	Result    string   `json:"result"`
	At        int64    `json:"at"` // Unix milliseconds, as the times below
	Created   int64    `json:"created"`
	Scheduled int64    `json:"scheduled"`
	Lane      api.Lane `json:"lane"`
	Gateway   string   `json:"gateway,omitempty"`
	Attempts  int      `json:"attempts"`
	Max       int      `json:"max"`
	Doubts    int      `json:"doubts,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

// How a message can end.
const (
	resultSent       = "sent"
	resultFailed     = "failed"
	resultCancelled  = "cancelled"
	resultSuppressed = "suppressed"
)

// ending is a message as it will stand in the log. A message whose record is to be forgotten at once has none: the empty string.
func (b *Outbox) ending(r row, st status, result, reason string, at time.Time) (string, error) {
	if b.opts.KeepEnded < 0 {
		return "", nil
	}
	return b.recaps.pack(r.id, ended{
		Envelope: r.envelope, Status: st, Result: result, At: millis(at), Created: r.created, Scheduled: r.planned, Lane: r.lane,
		Gateway: r.gateway, Attempts: r.attempts, Max: r.max, Doubts: r.doubts, Reason: reason,
	})
}

// row is the ended message as the log reads it.
func (e ended) row(id string) row {
	return row{
		id: id, state: e.Result, ended: e.At, lane: e.Lane, created: e.Created, planned: e.Scheduled, attempts: e.Attempts, max: e.Max,
		gateway: e.Gateway, doubts: e.Doubts, reason: e.Reason, envelope: e.Envelope, status: e.Status,
	}
}

// trace reads what stays of an ended message; false when nothing does.
func (b *Outbox) trace(ctx context.Context, p int, id string) (row, bool, error) {
	raw, err := b.DB.Client().Get(ctx, b.store.ended(p, id)).Bytes()
	if errors.Is(err, redis.Nil) || err == nil && len(raw) == 0 {
		return row{}, false, nil
	}
	if err != nil {
		return row{}, false, away(err, "read what became of message "+id)
	}
	e, err := b.recaps.unpack(id, raw)
	return e.row(id), err == nil, err
}

// recaps packs what stays of ended messages. There are many and they are alike, so they are compressed against an example of them all:
// that halves them once more.
type recaps struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// recapDictionary is the id of the example, below the range that RFC 8878 reserves. An example that is changed takes another id, and
// the decoder keeps the older ones for as long as the log holds what was packed with them.
const recapDictionary = 32769

// recapExample holds what the records have in common, the most frequent at the end (zstd finds that cheapest).
const recapExample = `"gateway":"","tls":"TLS 1.3","host":"smtp.","doubts":1,"inDoubt":true,"held":true,"subject":"","tags":[""],"metadata":{"":""},"key":"",` +
	`"lane":"bulk","result":"failed","result":"cancelled","reason":"api","error":"EENVELOPE","enhanced":"5.1.1","code":550,"line":"550 5.1.1 ` +
	`"last":{"message":"","code":"EENVELOPE","smtp":550}"type":"messageDeliveryError","type":"messageFailed","type":"messageCancelled","type":"messageReplayed",` +
	`{"envelope":{"account":"default","source":"smtp","source":"api","messageId":"\u003c@","from":"@example.com","to":["@gmail.com","@example.com"],"subject":"","size":` +
	`},"status":{"recipients":[{"status":"failed","response":"550 5.1.1 ","attempts":1},{"status":"sent","response":"250 2.0.0 Ok: queued as ","attempts":1}],` +
	`"log":[{"number":1,"start":"2026-01-01T00:00:00.000Z","end":"2026-01-01T00:00:00.000Z","host":":587","tls":"TLS 1.3","code":250,"line":"250 2.0.0 Ok: queued as "}],` +
	`"told":[{"id":"01K","type":"messageSent","at":17,"attempt":1}]},"result":"sent","at":17,"created":17,"scheduled":17,"lane":"transactional","attempts":1,"max":10}`

func newRecaps() (*recaps, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(64<<10), zstd.WithEncoderDictRaw(recapDictionary, []byte(recapExample)))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder of the log: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderDictRaw(recapDictionary, []byte(recapExample)))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder of the log: %w", err)
	}
	return &recaps{encoder: encoder, decoder: decoder}, nil
}

func (c *recaps) pack(id string, e ended) (string, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("write what stays of message %s: %w", id, err)
	}
	return string(c.encoder.EncodeAll(raw, make([]byte, 0, len(raw)/2))), nil
}

func (c *recaps) unpack(id string, packed []byte) (ended, error) {
	var e ended
	raw, err := c.decoder.DecodeAll(packed, make([]byte, 0, 4*len(packed)))
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err != nil {
		return e, fmt.Errorf("read what became of message %s: %w", id, err)
	}
	return e, nil
}
