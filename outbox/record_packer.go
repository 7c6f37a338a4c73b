package outbox

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// packer packs the JSON of messages: envelopes, statuses, and what the log keeps. There are many and they are
// alike, so they are compressed against an example of them all, which halves what Redis must hold. S2 does
// that as well as zstd in a sixth of the time: what is so short has little to gain from an entropy code, and
// most of its time goes into making one. It is safe for concurrent use.
type packer struct{ example *s2.Dict }

// packedFormat is the first byte of what was packed. An example that is changed takes another one, and the
// older examples stay for as long as Redis holds what was packed with them.
const packedFormat = 1

// packedMost is how large a part of a record may be, in bytes; more is not unpacked.
const packedMost = 256 << 20

// packedExample holds what the records have in common, the most frequent at the end.
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

// pack writes a part of a message's record.
func (p *packer) pack(id string, part any) (string, error) {
	raw, err := json.Marshal(part)
	if err != nil {
		return "", fmt.Errorf("write %T of message %s: %w", part, id, err)
	}
	room := make([]byte, 1+s2.MaxEncodedLen(len(raw)))
	room[0] = packedFormat
	return string(room[:1+len(p.example.Encode(room[1:], raw))]), nil
}

// unpack reads a part of a message's record.
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

// raw is the JSON that was packed.
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
		return s, fmt.Errorf("read status of message %s: %d recipients, envelope has %d", id, len(s.Recipients),
			len(e.To))
	}
	return s, nil
}
