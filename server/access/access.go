package access

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/server/people"
)

// BootstrapID is the TokenID of a Grant made by the bootstrap token.
const BootstrapID = "bootstrap"

// Options are the settings of Access. The zero value works.
type Options struct {
	// Token is the bootstrap token from the configuration; it may do everything. Empty if there is none.
	Token string
	// MaxFailures is the number of wrong tokens that one address may present in a minute. Defaults to 20.
	MaxFailures int
	// Requests returns how many requests a minute each token bound to an account may make, unless the token has
	// its own limit. 0 means any number. Nil means no account has a limit.
	Requests func(ctx context.Context, account string) (int, error)
	// People are the users who log in with a name and a password. Nil if no one does.
	People *people.People
	// SessionTTL is how long a session lasts at most, however much it is used. Defaults to 7 days.
	SessionTTL time.Duration
	// Logger gets refused attempts, and failures to store a token's use. Nil if nothing is logged.
	Logger *slog.Logger
}

// Access creates and checks tokens and sessions. It is safe for concurrent use.
type Access struct {
	store       store
	log         *slog.Logger
	bootstrap   []byte // SHA-256 of the bootstrap token; nil if there is none
	secret      string // the bootstrap token itself, for proofs of sessions
	maxFailures int
	requests    func(ctx context.Context, account string) (int, error) // nil means no account has a limit
	people      *people.People                                         // nil if there are none
	life        time.Duration                                          // maximum life of a session

	tokens *redisdb.Cache[*token] // emptied when any token is deleted

	mu      sync.Mutex
	blocked map[source]time.Time // end of the block of sources that failed too often
}

// New returns Access on an open database. It does no I/O.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*Access, error) {
	if db == nil || ring == nil {
		return nil, errors.New("access: a database and a key ring are needed")
	}
	a := &Access{
		store:       store{client: db.Client(), ring: ring},
		log:         cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		maxFailures: o.MaxFailures,
		requests:    o.Requests,
		people:      o.People,
		life:        cmp.Or(o.SessionTTL, 7*24*time.Hour),
		blocked:     map[source]time.Time{},
		tokens:      redisdb.NewCache[*token](db, versionKey(), nil),
	}
	a.maxFailures = cmp.Or(max(a.maxFailures, 0), 20)
	if o.Token != "" {
		sum := sha256.Sum256([]byte(o.Token))
		a.bootstrap, a.secret = sum[:], o.Token
	}
	return a, nil
}

// isBootstrap compares hashes, so that the time reveals neither the length nor the first wrong byte.
func (a *Access) isBootstrap(presented string) bool {
	if a.bootstrap == nil {
		return false
	}
	sum := sha256.Sum256([]byte(presented))
	return subtle.ConstantTimeCompare(sum[:], a.bootstrap) == 1
}

// proof binds a session to the present bootstrap token. The token can't be guessed from it: the key is the
// cookie, which is not stored.
func (a *Access) proof(cookie string) string {
	mac := hmac.New(sha256.New, []byte(cookie))
	mac.Write([]byte(a.secret))
	return hex.EncodeToString(mac.Sum(nil))
}

// newSecret returns 256 random bits as 64 hex digits.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// secretHash returns the SHA-256 of the bytes of 64 hex digits, or false for any other text.
func secretHash(presented string) (string, bool) {
	if len(presented) != 2*sha256.Size {
		return "", false
	}
	b, err := hex.DecodeString(presented)
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), true
}
