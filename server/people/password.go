package people

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/postroom/postroom/api/fault"
)

// cost is a password's cost. It is stored with each hash.
type cost struct {
	memory uint32 // kB
	passes uint32
	lanes  uint8
}

// usual is the second recommended choice of RFC 9106, for machines where memory is bounded.
var usual = cost{memory: 64 << 10, passes: 3, lanes: 4}

const (
	atOnce   = 2 // passwords that are computed
	waiting  = 16
	patience = 5 * time.Second
	saltSize = 16
	hashSize = 32
)

// hasher computes hashes of passwords, few at a time.
type hasher struct {
	cost    cost // for new passwords
	slots   chan struct{}
	waiting *atomic.Int32
	none    string // the hash of a password that no one knows
}

func newHasher(memory uint32) hasher {
	c := usual
	c.memory = cmp.Or(memory, c.memory)
	return hasher{cost: c, slots: make(chan struct{}, atOnce), waiting: new(atomic.Int32),
		none: phc(c, make([]byte, saltSize), make([]byte, hashSize))}
}

// turn waits for a slot. done gives it back.
func (h hasher) turn(ctx context.Context) (done func(), err error) {
	if h.waiting.Add(1) > waiting {
		h.waiting.Add(-1)
		return nil, busy()
	}
	defer h.waiting.Add(-1)
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	case <-timeout.C:
		return nil, busy()
	case <-ctx.Done():
		return nil, fault.Wrap(context.Cause(ctx), fault.Unavailable, "Busy", "The sign-in was cancelled")
	}
}

func busy() error {
	f := fault.New(fault.Unavailable, "Busy", "Too many people are signing in right now. Try again")
	f.RetryAfter = patience
	return f
}

// hash returns the PHC string of a password.
func (h hasher) hash(ctx context.Context, password string) (string, error) {
	done, err := h.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	salt := make([]byte, saltSize)
	rand.Read(salt) // never fails (crypto/rand)
	return phc(h.cost, salt, h.cost.key(password, salt)), nil
}

// matches reports whether a password matches a PHC string. For an empty string it computes as long, and
// returns false.
func (h hasher) matches(ctx context.Context, stored, password string) (bool, error) {
	have := stored
	have = cmp.Or(have, h.none)
	c, salt, want, err := parsePHC(have)
	if err != nil {
		return false, err
	}
	done, err := h.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if len(password) > maxPassword {
		password = "" // no one has it
	}
	return subtle.ConstantTimeCompare(c.key(password, salt), want) == 1 && stored != "", nil
}

func (c cost) key(password string, salt []byte) []byte {
	return argon2.IDKey([]byte(password), salt, c.passes, c.memory, c.lanes, hashSize)
}

var base = base64.RawStdEncoding

// phc returns a hash as a string with its parameters
// (https://github.com/P-H-C/phc-string-format/blob/master/phc-sf-spec.md).
func phc(c cost, salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.memory, c.passes, c.lanes,
		base.EncodeToString(salt), base.EncodeToString(hash))
}

func parsePHC(text string) (c cost, salt, hash []byte, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, fmt.Errorf("people: a password is not stored as argon2id")
	}
	if _, err = fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.memory, &c.passes, &c.lanes); err != nil {
		return c, nil, nil, fmt.Errorf("people: read the parameters of a password: %w", err)
	}
	if salt, err = base.DecodeString(parts[4]); err == nil {
		hash, err = base.DecodeString(parts[5])
	}
	if err != nil {
		return c, nil, nil, fmt.Errorf("people: read the hash of a password: %w", err)
	}
	return c, salt, hash, nil
}
