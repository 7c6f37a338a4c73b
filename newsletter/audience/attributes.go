package audience

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/segment"
)

// attributes keeps which attributes, with their types, each account's subscribers ever had.
type attributes struct {
	db *redisdb.DB

	mu    sync.Mutex
	known map[string]bool // by account, a blank, and the member of the set
}

// attributesKey is a set of the names and types of attributes: "plan text".
func attributesKey(account string) string { return redisdb.Key(0, "subscriber-attributes", account) }

// all returns the types of each attribute of an account.
func (a *attributes) all(ctx context.Context, account string) (map[string][]string, error) {
	found, err := a.db.Client().SMembers(ctx, attributesKey(account)).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "read the attributes of account %s", account)
	}
	types := map[string][]string{}
	for _, member := range found {
		name, kind, _ := strings.Cut(member, " ")
		types[name] = append(types[name], kind)
	}
	for _, list := range types {
		slices.Sort(list)
	}
	return types, nil
}

// learn remembers the attributes of a record, a JSON object. It asks Redis once for each name and type.
func (a *attributes) learn(ctx context.Context, account string, object []byte) error {
	if len(object) == 0 {
		return nil
	}
	var values map[string]any
	if err := json.Unmarshal(object, &values); err != nil {
		return errRecord
	}
	members := make(map[string]bool, len(values))
	for name, value := range values {
		members[name+" "+segment.TypeOf(value)] = true
	}
	return a.learnAll(ctx, account, members)
}

// learnAll remembers members of the set.
func (a *attributes) learnAll(ctx context.Context, account string, members map[string]bool) error {
	var fresh []any
	a.mu.Lock()
	for member := range members {
		if !a.known[account+" "+member] {
			fresh = append(fresh, member)
		}
	}
	a.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	if err := a.db.Client().SAdd(ctx, attributesKey(account), fresh...).Err(); err != nil {
		return redisdb.Failed(err, "store the attributes of account %s", account)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) > maxWords {
		a.known = map[string]bool{}
	}
	for _, member := range fresh {
		a.known[account+" "+member.(string)] = true
	}
	return nil
}
