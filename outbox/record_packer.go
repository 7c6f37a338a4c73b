package outbox

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// packer packs the JSON of messages: envelopes, statuses, log entries. They are alike, so they are compressed
// against an example, which halves the memory in Redis. S2 compresses them as well as zstd does, in a sixth
// of the time: so short a text gains little from an entropy code. It is safe for concurrent use.
type packer struct{ example *s2.Dict }

// packedFormat is the first byte of packed JSON. A changed example takes another number. The old example
// stays as long as Redis has data that was packed with it.
const packedFormat = 1

// packedMost is the largest JSON that is unpacked, in bytes.
const packedMost = 256 << 20

// packedExample is what the records have in common, the most frequent text at the end.
const packedExample = `"gateway":"","tls":"TLS 1.3","host":"smtp.","doubts":1,"inDoubt":true,"held":true,"subject":"","tags":[""],"metadata":{"":""},"key":"",` +
	`"lane":"bulk","result":"failed","result":"cancelled","reason":"api","error":"EENVELOPE","enhanced":"5.1.1","code":550,"line":"550 5.1.1 ` +
	`"last":{"message":"","code":"EENVELOPE","smtp":550}"type":"messageDeliveryError","type":"messageFailed","type":"messageCancelled","type":"messageReplayed",` +
	`{"envelope":{"account":"default","source":"smtp","source":"api","messageId":"\u003c@example.com\u003e","from":"@example.com","to":["@gmail.com","@example.com"],"subject":"","size":` +
	`},"status":{"recipients":[{"status":"failed","response":"550 5.1.1 ","attempts":1},{"status":"sent","response":"250 2.0.0 Ok: queued as ","attempts":1}],` +
	`"log":[{"number":1,"start":"2026-01-01T00:00:00.000Z","end":"2026-01-01T00:00:00.000Z","host":":587","tls":"TLS 1.3","code":250,"line":"250 2.0.0 Ok: queued as "}],` +
	`"events":[{"id":"01K","type":"messageSent","at":17,"attempt":1}]},"result":"sent","at":17,"created":17,"scheduled":17,"lane":"transactional","attempts":1,"max":10}`

func newPacker() *packer {
	return &packer{example: s2.MakeDict([]byte(packedExample), nil)}
}

// pack packs a part of a message's record.
func (p *packer) pack(id string, part any) (string, error) {
	raw, err := json.Marshal(part)
	if err != nil {
		return "", fmt.Errorf("write %T of message %s: %w", part, id, err)
	}
	packed := make([]byte, 1+s2.MaxEncodedLen(len(raw)))
	packed[0] = packedFormat
	return string(packed[:1+len(p.example.Encode(packed[1:], raw))]), nil
}

// unpack unpacks a part of a message's record.
func (p *packer) unpack(id string, packed []byte, part any) error {
	raw, err := p.raw(packed)
	if err == nil {
		err = json.Unmarshal(raw, part)
	}
	if err != nil {
		return fmt.Errorf("read %T of message %s: %w", part, id, err)
	}
	return nil
}

// raw returns the JSON.
func (p *packer) raw(packed []byte) ([]byte, error) {
	if len(packed) == 0 || packed[0] != packedFormat {
		return nil, errors.New("it was not packed by this version of Postroom")
	}
	size, err := s2.DecodedLen(packed[1:])
	if err == nil && size > packedMost {
		err = fmt.Errorf("%d bytes, of %d at most", size, packedMost)
	}
	if err != nil {
		return nil, err
	}
	return p.example.Decode(make([]byte, 0, size), packed[1:])
}

// unpackStatus unpacks a status; "" is the status before the first attempt.
func (p *packer) unpackStatus(id, packed string, e envelope) (status, error) {
	if packed == "" {
		return newStatus(e), nil
	}
	var s status
	if err := p.unpack(id, []byte(packed), &s); err != nil {
		return s, err
	}
	if len(s.Recipients) != len(e.To) {
		return s, fmt.Errorf("read status of message %s: %d recipients, envelope has %d", id, len(s.Recipients),
			len(e.To))
	}
	return s, nil
}
