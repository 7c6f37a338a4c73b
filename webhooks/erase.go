package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	erasedAtOnce = 250
	erasePause   = 2 * time.Millisecond // between pages, so that deliveries continue
)

// Erase removes a person from an account's deliveries (all accounts' if account is empty) to every endpoint,
// including deleted ones. A delivery about the person alone is deleted, even if it is pending. In others the
// address becomes message.Erased. tally counts each before it is changed. You can repeat it.
func (w *Webhooks) Erase(ctx context.Context, account string, t *message.Traces,
	tally func(n int) error) error {
	return w.naming(ctx, account, t, func(r ref, record map[string]string) error {
		covered, _ := t.CoverJSON(record["event"])
		if onlyErased(covered) {
			covered = ""
		}
		if err := tally(1); err != nil {
			return err
		}
		_, err := eraseScript.Run(ctx, w.store.client, []string{deliveryKey(r)}, eraseArgs{r.Endpoint, r.Delivery,
			covered, t.Cover(record["response"]), t.Cover(record["error"])})
		return redisdb.Failed(err, "erase a person from a webhook delivery")
	})
}

// Personal calls do with the deliveries that name a person.
func (w *Webhooks) Personal(ctx context.Context, account string, t *message.Traces,
	do func(api.Delivery) error) error {
	return w.naming(ctx, account, t, func(r ref, record map[string]string) error {
		d := showDelivery(r, record)
		d.Body = json.RawMessage(record["event"])
		return do(d)
	})
}

// naming calls do with the deliveries that name a person.
func (w *Webhooks) naming(ctx context.Context, account string, t *message.Traces,
	do func(ref, map[string]string) error) error {
	return w.db.Scan(ctx, logKey("*"), func(keys []string) error {
		for _, key := range keys {
			endpoint := strings.TrimPrefix(key, logKey(""))
			if err := w.eachDelivery(ctx, endpoint, func(r ref, record map[string]string) error {
				_, found := t.CoverJSON(record["event"])
				if !found && !t.In(record["response"]) && !t.In(record["error"]) && !inTries(t, record) ||
					account != "" && showDelivery(r, record).Account != account {
					return nil
				}
				return do(r, record)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachDelivery calls do with the deliveries of an endpoint, a page at a time, each once or more.
func (w *Webhooks) eachDelivery(ctx context.Context, endpoint string,
	do func(ref, map[string]string) error) error {
	for cursor := uint64(0); ; {
		members, next, err := w.store.client.ZScan(ctx, logKey(endpoint), cursor, "", erasedAtOnce).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return redisdb.Failed(err, "read the deliveries of webhook endpoint %s", endpoint)
		}
		var refs []ref
		for i := 0; i+1 < len(members); i += 2 { // each with its score
			refs = append(refs, ref{Endpoint: endpoint, Delivery: members[i]})
		}
		records, err := w.store.read(ctx, refs...)
		if err != nil {
			return redisdb.Away(err)
		}
		for i, record := range records {
			if len(record) == 0 { // it ended between the two reads
				continue
			}
			if err := do(refs[i], record); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
		if !redisdb.Pause(ctx, erasePause) {
			return fmt.Errorf("read the deliveries of webhook endpoint %s: %w", endpoint, ctx.Err())
		}
	}
}

// onlyErased reports whether an event is about erased people only.
func onlyErased(line string) bool {
	var e struct {
		Data struct {
			Recipient, Email string
			Envelope         struct{ To []string }
		}
	}
	if json.Unmarshal([]byte(line), &e) != nil {
		return false
	}
	about := e.Data.Envelope.To
	for _, one := range []string{e.Data.Recipient, e.Data.Email} {
		if one != "" {
			about = []string{one}
		}
	}
	for _, one := range about {
		if one != message.Erased {
			return false
		}
	}
	return len(about) > 0
}
