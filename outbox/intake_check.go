package outbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
)

// maxMetadata is the largest metadata object, in bytes of JSON. Every event carries it.
const maxMetadata = 4 << 10

// maxEnvelopeID is the longest ENVID of RFC 3461 section 4.4.
const maxEnvelopeID = 100

// faults collects wrong fields. Their keys are those of the API.
type faults []fault.Field

func (f *faults) add(key, format string, args ...any) {
	*f = append(*f, fault.Field{Key: key, Message: fmt.Sprintf(format, args...)})
}

// checkShared finds the wrong fields of what messages share, apart from those that package message finds.
func checkShared(sh Shared, now time.Time) []fault.Field {
	var wrong faults
	if len(sh.Raw) > 0 && (sh.HTML != "" || sh.Text != "" || len(sh.Attachments) > 0) {
		wrong.add("raw", "can't be combined with html, text or attachments")
	}
	wrong.checkWords(sh)
	if _, err := schedule.Zone(cmp.Or(sh.TZ, "UTC")); err != nil {
		wrong.add("tz", "%s", err)
	}
	if sh.DeliverBy != nil && !sh.DeliverBy.After(now) {
		wrong.add("deliverBy", "must be in the future")
	}
	if sh.DSN != nil {
		wrong.checkDSN(*sh.DSN)
	}
	for i, tag := range sh.Tags {
		if tag == "" || len(tag) > 128 {
			wrong.add(fmt.Sprintf("tags[%d]", i), "must have 1 to 128 characters")
		}
	}
	return wrong
}

// checkWords finds wrong combinations of the fields that give the words.
func (f *faults) checkWords(sh Shared) {
	for _, field := range []struct {
		key   string
		given bool
	}{
		{"raw", len(sh.Raw) > 0}, {"html", sh.HTML != ""}, {"text", sh.Text != ""},
	} {
		if field.given && sh.Template != "" {
			f.add(field.key, "can't be combined with template")
		}
	}
	if sh.Plain {
		return
	}
	if len(sh.Raw) > 0 && sh.Template == "" {
		f.add("render", "can't be combined with raw")
	}
}

// checkDSN finds what no relay accepts in a request for notifications (RFC 3461). Here it is a fault of the
// client; at the relay it would fail an accepted message.
func (f *faults) checkDSN(dsn api.DSN) {
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if len(dsn.ID) > maxEnvelopeID || strings.ContainsFunc(dsn.ID, unprintable) {
		f.add("dsn.id", "must have at most %d characters, all of them printable ASCII", maxEnvelopeID)
	}
	if len(dsn.Notify) > 1 && slices.Contains(dsn.Notify, "never") {
		f.add("dsn.notify", "can't have anything beside never")
	}
	if dsn.Recipient == "" {
		return
	}
	if _, err := message.NormalizeAddress(dsn.Recipient); err != nil {
		f.add("dsn.recipient", "%s", err)
	}
}

// checkEntry finds the wrong fields of an entry, apart from those that package message finds.
func (b *Batch) checkEntry(e Entry, many bool) []fault.Field {
	var wrong faults
	wrong.checkMetadata(e.Metadata)
	if e.SendAt != nil {
		wrong = append(wrong, b.in.opts.checkAhead(*e.SendAt, b.began)...)
	}
	sh := b.shared
	if sh.DeliverBy != nil && e.SendAt != nil && sh.DeliverBy.Before(*e.SendAt) {
		if many {
			wrong.add("sendAt", "must not be after deliverBy")
		} else {
			wrong.add("deliverBy", "must not be before sendAt")
		}
	}
	return wrong
}

// checkKey finds the fault of an entry that lacks the idempotency key it needs.
func checkKey(sh Shared, e Entry) []fault.Field {
	if e.Key != "" || !sh.KeyRequired {
		return nil
	}
	return []fault.Field{{Key: "idempotencyKey", Message: "is required"}}
}

func (f *faults) checkMetadata(metadata json.RawMessage) {
	if len(metadata) > maxMetadata {
		f.add("metadata", "must be at most %d bytes of JSON", maxMetadata)
	}
	if len(metadata) > 0 && !strings.HasPrefix(strings.TrimSpace(string(metadata)), "{") {
		f.add("metadata", "must be an object")
	}
}

// joinFields returns wrong fields and the fields of err as one fault.
func joinFields(fields []fault.Field, err error) error {
	if len(fields) == 0 {
		return err
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		for _, field := range f.Fields {
			if !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	} else if err != nil {
		return err
	}
	return fault.InvalidFields(fields)
}
