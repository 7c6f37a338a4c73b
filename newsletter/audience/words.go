package audience

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// words keeps each account's sources and consent texts once: subscriptions refer to them by number. A number
// never changes its text, so both directions are cached.
type words struct {
	db *redisdb.DB

	mu      sync.Mutex
	numbers map[string]uint32 // by account, a blank, and the text
	texts   map[string]string // by account, a blank, and the number
}

// maxWords bounds the cache; beyond it the cache starts over.
const maxWords = 10_000

func wordsKey(account string) string { return redisdb.Key(0, "subscriber-words", account) }

// intern returns the numbers of texts, and numbers new texts. The empty text's number is 0.
func (w *words) intern(ctx context.Context, account string, texts ...string) ([]uint32, error) {
	numbers := make([]uint32, len(texts))
	var missing []string
	w.mu.Lock()
	for i, text := range texts {
		if numbers[i] = w.numbers[account+" "+text]; numbers[i] == 0 && text != "" {
			missing = append(missing, text)
		}
	}
	w.mu.Unlock()
	if len(missing) == 0 {
		return numbers, nil
	}
	answer, err := internScript.RunReplicated(ctx, w.db, []string{wordsKey(account)}, missing)
	if err != nil {
		return nil, redisdb.Failed(err, "store a consent text of account %s", account)
	}
	given := map[string]uint32{}
	for i, field := range strings.Fields(answer) {
		n, err := strconv.ParseUint(field, 10, 32)
		if err != nil || i >= len(missing) {
			return nil, errRecord
		}
		given[missing[i]] = uint32(n)
	}
	for i, text := range texts {
		if n, ok := given[text]; ok {
			numbers[i] = n
			w.remember(account, text, n)
		}
	}
	return numbers, nil
}

// read returns the texts of numbers. The text of 0, or of an unknown number, is empty.
func (w *words) read(ctx context.Context, account string, numbers []uint32) (map[uint32]string, error) {
	texts := make(map[uint32]string, len(numbers))
	var missing []string
	w.mu.Lock()
	for _, n := range numbers {
		text, ok := w.texts[account+" "+decimal(n)]
		if texts[n] = text; !ok && n != 0 {
			missing = append(missing, decimal(n))
		}
	}
	w.mu.Unlock()
	if len(missing) == 0 {
		return texts, nil
	}
	found, err := w.db.Client().HMGet(ctx, wordsKey(account), missing...).Result()
	if err != nil && err != redis.Nil {
		return nil, redisdb.Failed(err, "read the consent texts of account %s", account)
	}
	for i, value := range found {
		if text, ok := value.(string); ok {
			n, _ := strconv.ParseUint(missing[i], 10, 32)
			texts[uint32(n)] = text
			w.remember(account, text, uint32(n))
		}
	}
	return texts, nil
}

func (w *words) remember(account, text string, n uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.numbers == nil || len(w.numbers) >= maxWords {
		w.numbers, w.texts = map[string]uint32{}, map[string]string{}
	}
	w.numbers[account+" "+text] = n
	w.texts[account+" "+decimal(n)] = text
}
