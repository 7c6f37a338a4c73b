package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Rotated is the action of the entry that vouches for entries under a secret that is removed afterwards.
const Rotated = "secret rotate"

// signer signs hashes under the instance's current secret, and checks hashes under all known ones.
type signer struct {
	keys map[string][]byte // by their id
	now  string            // id of the current one
}

func newSigner(ring *seal.Ring) (signer, error) {
	all, err := ring.DeriveAll("audit")
	if err != nil {
		return signer{}, fmt.Errorf("audit: the key of the log: %w", err)
	}
	s := signer{keys: make(map[string][]byte, len(all))}
	for i, key := range all {
		sum := sha256.Sum256(key)
		id := hex.EncodeToString(sum[:4])
		s.keys[id] = key
		if i == 0 {
			s.now = id
		}
	}
	return s, nil
}

// sign returns the MAC of hashes of entries, or of a checkpoint.
func (s signer) sign(key string, what ...string) string {
	mac := hmac.New(sha256.New, s.keys[key])
	mac.Write([]byte(strings.Join(what, "\n")))
	return hex.EncodeToString(mac.Sum(nil))
}

// signed reports whether code is the MAC by a known key; known is false if the key is not.
func (s signer) signed(key, code string, what ...string) (ok, known bool) {
	if s.keys[key] == nil {
		return false, false
	}
	return hmac.Equal([]byte(code), []byte(s.sign(key, what...))), true
}

func (s signer) checkpoint(h api.AuditHead) trimArgs {
	return trimArgs{ID: h.ID, Seq: h.Seq, Hash: h.Hash, Key: s.now,
		MAC: s.sign(s.now, "checkpoint", strconv.FormatInt(h.Seq, 10), h.ID, h.Hash)}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// link makes the next entry of the chain after head. The entry gets its number, position and time.
func link(head api.AuditHead, e *api.AuditEntry, now time.Time) ([]byte, error) {
	e.Seq, e.Prev, e.ID = head.Seq+1, head.Hash, nextID(head.ID, now)
	e.Time = now.UTC().Truncate(time.Millisecond)
	e.Nonce, e.Hash, e.Key, e.MAC = rand.Text(), "", "", ""
	return json.Marshal(e)
}

// nextID returns a position after another one, by the clock unless that is behind.
func nextID(last string, now time.Time) string {
	ms, n := splitID(last)
	if at := now.UnixMilli(); at > ms {
		return strconv.FormatInt(at, 10) + "-0"
	}
	return strconv.FormatInt(ms, 10) + "-" + strconv.FormatInt(n+1, 10)
}

func splitID(id string) (ms, n int64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseInt(first, 10, 64)
	n, _ = strconv.ParseInt(second, 10, 64)
	return ms, n
}

const maxProblems = 100

// verification checks a chain, entry by entry.
type verification struct {
	signer
	last     api.AuditHead // the entry before; at first the checkpoint
	known    api.AuditHead // an entry that must be there; Seq 0: none
	seen     bool          // known was found
	open     []int64       // entries of the first changes without a result
	unknown  int64         // number of the last entry that is signed by an unknown key
	rotated  int64         // number of the last entry that vouches for those before
	older    int           // entries that the current secret does not vouch for
	entries  int64
	first    int64
	problems []api.AuditProblem
}

func (v *verification) problem(seq int64, id, format string, args ...any) {
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, api.AuditProblem{Seq: seq, ID: id, Text: fmt.Sprintf(format, args...)})
	}
}

// begin checks the checkpoint, which is where the chain begins.
func (v *verification) begin(p anchor) {
	v.last = p.AuditHead
	v.first = p.Seq + 1
	if p.Seq == 0 {
		return
	}
	want := []string{"checkpoint", strconv.FormatInt(p.Seq, 10), p.ID, p.Hash}
	if ok, _ := v.signed(p.key, p.mac, want...); !ok {
		v.problem(p.Seq, p.ID, "the checkpoint, where the log begins, is not signed by this instance")
	}
}

// step checks the next entry.
func (v *verification) step(s sealed) {
	v.entries++
	var e api.AuditEntry
	if err := json.Unmarshal([]byte(s.text), &e); err != nil {
		v.problem(v.last.Seq+1, s.id, "the entry can't be read: it was changed")
		v.last = api.AuditHead{Seq: v.last.Seq + 1, ID: s.id, Hash: s.hash}
		return
	}
	hash := hashOf(s.text)
	ok, known := v.signed(s.key, s.code, hash)
	switch {
	case hash != s.hash || known && !ok:
		v.problem(e.Seq, s.id, "the entry was changed, or not written by this instance")
	case e.ID != s.id:
		v.problem(e.Seq, s.id, "the entry was moved: it was written as %s", e.ID)
	case e.Seq > v.last.Seq+1:
		v.problem(e.Seq, s.id, "%d entries before this one are missing", e.Seq-v.last.Seq-1)
	case e.Prev != v.last.Hash || e.Seq != v.last.Seq+1:
		v.problem(e.Seq, s.id, "the entry does not follow the one before")
	}
	if s.key != v.now {
		v.older++
	}
	if !known {
		v.unknown = e.Seq
	} else if ok && e.Action == Rotated {
		v.rotated = e.Seq
		if s.key == v.now {
			v.older = 0
		}
	}
	if e.Result == api.AuditBegun && len(v.open) < maxOpen {
		v.open = append(v.open, e.Seq)
	}
	v.last = api.AuditHead{Seq: e.Seq, ID: s.id, Hash: hash}
	if v.last.Seq == v.known.Seq {
		v.seen = v.last.Hash == v.known.Hash
	}
}

// end checks what the whole chain must show.
func (v *verification) end(head api.AuditHead) {
	if v.unknown > v.rotated {
		v.problem(v.unknown, "", "entries are signed by a secret that is not configured, and no later entry "+
			"vouches for them: set secretPrevious, and run postroom secret rotate before it is removed")
	}
	if head.Seq != v.last.Seq || head.Hash != v.last.Hash {
		v.problem(head.Seq, head.ID, "the log ends with entry %d, and must end with entry %d", v.last.Seq, head.Seq)
	}
	if v.known.Seq >= v.first && !v.seen {
		v.problem(v.known.Seq, v.known.ID, "entry %d, which the log had, is gone or another one", v.known.Seq)
	}
}
