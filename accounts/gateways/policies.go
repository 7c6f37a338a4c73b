package gateways

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// Policies keeps the MTA-STS policies of recipients' domains for all processes. It implements
// mxsend.Policies.
type Policies struct{ db *redisdb.DB }

// NewPolicies returns the policies in a database.
func NewPolicies(db *redisdb.DB) Policies { return Policies{db} }

func policyKey(domain string) string { return redisdb.Key(0, "mx", "policy", domain) }

// Get returns the policy that was put last for a domain, unless it has expired.
func (p Policies) Get(ctx context.Context, domain string) (policy mxsend.Policy, ok bool, err error) {
	values, err := p.db.Client().MGet(ctx, policyKey(domain)).Result()
	if err == nil && values[0] != nil {
		ok = true
		err = json.Unmarshal([]byte(fmt.Sprint(values[0])), &policy)
	}
	if err != nil {
		return policy, false, fmt.Errorf("read the MTA-STS policy of %s: %w", domain, err)
	}
	return policy, ok, nil
}

// Put keeps a policy until it expires.
func (p Policies) Put(ctx context.Context, domain string, policy mxsend.Policy) error {
	raw, err := json.Marshal(policy)
	if err == nil {
		err = p.db.Client().Set(ctx, policyKey(domain), raw, max(time.Second, time.Until(policy.Expires))).Err()
	}
	if err != nil {
		return fmt.Errorf("keep the MTA-STS policy of %s: %w", domain, err)
	}
	return nil
}
