package outbox

import (
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// packer packs the JSON of messages: envelopes, statuses, and what the log keeps. There are many and they are alike, so they are compressed
// against an example of them all, which halves what Redis must hold. It is safe for concurrent use.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// packedDictionary is the id of the example, below the range that RFC 8878 reserves. An example that is changed takes another id, and the
// decoder keeps the older ones for as long as Redis holds what was packed with them.
const packedDictionary = 32769

// packedExample holds what the records have in common, the most frequent at the end (zstd finds that cheapest).
const packedExample = `"gateway":"","tls":"TLS 1.3","host":"smtp.","doubts":1,"inDoubt":true,"held":true,"subject":"","tags":[""],"metadata":{"":""},"key":"",` +
	`"lane":"bulk","result":"failed","result":"cancelled","reason":"api","error":"EENVELOPE","enhanced":"5.1.1","code":550,"line":"550 5.1.1 ` +
	`"last":{"message":"","code":"EENVELOPE","smtp":550}"type":"messageDeliveryError","type":"messageFailed","type":"messageCancelled","type":"messageReplayed",` +
	`{"envelope":{"account":"default","source":"smtp","source":"api","messageId":"\u003c@example.com\u003e","from":"@example.com","to":["@gmail.com","@example.com"],"subject":"","size":` +
	`},"status":{"recipients":[{"status":"failed","response":"550 5.1.1 ","attempts":1},{"status":"sent","response":"250 2.0.0 Ok: queued as ","attempts":1}],` +
	`"log":[{"number":1,"start":"2026-01-01T00:00:00.000Z","end":"2026-01-01T00:00:00.000Z","host":":587","tls":"TLS 1.3","code":250,"line":"250 2.0.0 Ok: queued as "}],` +
	`"told":[{"id":"01K","type":"messageSent","at":17,"attempt":1}]},"result":"sent","at":17,"created":17,"scheduled":17,"lane":"transactional","attempts":1,"max":10}`

func newPacker() (*packer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(64<<10), zstd.WithEncoderDictRaw(packedDictionary, []byte(packedExample)))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder of records: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderDictRaw(packedDictionary, []byte(packedExample)))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder of records: %w", err)
	}
	return &packer{encoder: encoder, decoder: decoder}, nil
}

// pack writes a part of a message's record.
func (p *packer) pack(id string, part any) (string, error) {
	raw, err := json.Marshal(part)
	if err != nil {
		return "", fmt.Errorf("write %T of message %s: %w", part, id, err)
	}
	return string(p.encoder.EncodeAll(raw, make([]byte, 0, len(raw)/2+32))), nil
}

// unpack reads a part of a message's record.
func (p *packer) unpack(id string, packed []byte, part any) error {
	raw, err := p.decoder.DecodeAll(packed, make([]byte, 0, 4*len(packed)))
	if err == nil {
		err = json.Unmarshal(raw, part)
	}
	if err != nil {
		return fmt.Errorf("read %T of message %s: %w", part, id, err)
	}
	return nil
}

// unpackStatus reads a stored status; an absent one is that of a message never tried.
func (p *packer) unpackStatus(id, packed string, e envelope) (status, error) {
	if packed == "" {
		return newStatus(e), nil
	}
	var s status
	if err := p.unpack(id, []byte(packed), &s); err != nil {
		return s, err
	}
	if len(s.Recipients) != len(e.To) {
		return s, fmt.Errorf("read status of message %s: %d recipients, envelope has %d", id, len(s.Recipients), len(e.To))
	}
	return s, nil
}
