package outbox

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// sealer seals stored message bodies, and opens them. Sealed data is recognized by its first byte, so
// processes that seal and processes that don't can share a Redis. The zero value does neither.
type sealer struct {
	ring    *seal.Ring // nil if nothing is opened
	sealing bool
	hashing [][]byte // keys of hashes, with the current secret's first
}

func newSealer(ring *seal.Ring, sealing bool) (sealer, error) {
	if ring == nil {
		if sealing {
			return sealer{}, errors.New("new outbox: there is no ring to seal with")
		}
		return sealer{}, nil
	}
	keys, err := ring.DeriveAll("hashes of mail")
	return sealer{ring, sealing, keys}, err
}

// Names of sealed data: the ends of the keys in Redis. A box moved to another message does not open.
func contentName(id string) string  { return "content:" + id }
func sharedName(name string) string { return "shared:" + name }
func textName(id string) string     { return "text:" + id }
func dialogueName(id string) string { return "dialogues:" + id }

// seal seals a value.
func (s sealer) seal(value []byte, name string) []byte {
	if !s.sealing {
		return value
	}
	box := make([]byte, seal.BoxHead, seal.BoxSize(len(value)))
	return s.ring.SealBox(append(box, value...), name)
}

// opened returns a value that may be sealed. It spoils sealed.
func (s sealer) opened(value []byte, name string) ([]byte, error) {
	if s.ring == nil || !seal.IsBox(value) {
		return value, nil
	}
	value, err := s.ring.OpenBox(value, name)
	return value, unopened(err, name)
}

// reader returns a reader of a value that may be sealed.
func (s sealer) reader(value io.ReaderAt, name string) (io.Reader, error) {
	var first [1]byte
	if _, err := value.ReadAt(first[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if s.ring != nil && seal.IsBox(first[:]) {
		r, err := s.ring.BoxReader(value, name)
		return opening{r, name}, unopened(err, name)
	}
	if whole, ok := value.(*strings.Reader); ok {
		return whole, nil
	}
	return bufio.NewReaderSize(io.NewSectionReader(value, 0, math.MaxInt64), small), nil
}

// opening names what does not open while it is read.
type opening struct {
	io.Reader
	name string
}

func (o opening) Read(into []byte) (int, error) {
	n, err := o.Reader.Read(into)
	return n, unopened(err, o.name)
}

// notOpened is the code of a content whose secret this process does not have. Its message waits for it.
const notOpened = "ContentSealed"

// unopened returns the error for a value that doesn't open, and any other error unchanged.
func unopened(err error, name string) error {
	switch {
	case errors.Is(err, seal.ErrUnknownKey):
		return fault.Wrap(err, fault.Conflict, notOpened,
			"%s is encrypted with a secret that isn't configured. Set secretPrevious to it", name)
	case errors.Is(err, seal.ErrDamaged):
		return fault.Wrap(err, fault.Conflict, "ContentDamaged", "%s was changed in Redis and can't be "+
			"decrypted", name)
	}
	return err
}

// hidden returns a hash of something in an email as it is stored. If contents are sealed, a key of the
// instance is in it: otherwise who reads Redis could try what the mail may say.
func (s sealer) hidden(hash string) string {
	if !s.sealing {
		return hash
	}
	return keyed(s.hashing[0], hash)
}

func keyed(key []byte, hash string) string {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(hash))
	return short(sum.Sum(nil))
}

// prints returns fingerprints as the scripts take them: the form in which a new one is stored, then the forms
// in which another process may have stored it. A request without a key has none.
func (s sealer) prints(fingerprints string) string {
	var all []string
	for fingerprint := range strings.FieldsSeq(fingerprints) {
		forms := []string{fingerprint}
		for _, key := range s.hashing {
			forms = append(forms, keyed(key, fingerprint))
		}
		if s.sealing {
			forms[0], forms[1] = forms[1], forms[0]
		}
		all = append(all, forms...)
	}
	return strings.Join(all, " ")
}
