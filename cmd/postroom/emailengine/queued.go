package emailengine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
)

func (s *redisSource) Queue(ctx context.Context) (Queue, error) {
	ids, active, err := s.jobs(ctx)
	if err != nil {
		return Queue{}, s.failed(err)
	}
	paused, err := s.db.HExists(ctx, s.key("bull:submit:meta"), "paused").Result()
	return Queue{Paused: paused, Queued: len(ids) + len(active)}, s.failed(err)
}

// jobs returns the ids of the jobs that wait for their time or a worker, and of those that a worker has.
// Older versions of BullMQ rename the list wait to paused.
func (s *redisSource) jobs(ctx context.Context) (ids, active []string, err error) {
	for _, name := range []string{"wait", "paused", "prioritized", "delayed"} {
		var some []string
		key := s.key("bull:submit:" + name)
		switch kind, err := s.db.Type(ctx, key).Result(); {
		case err != nil:
			return nil, nil, err
		case kind == "list":
			some, err = s.db.LRange(ctx, key, 0, -1).Result()
			if err != nil {
				return nil, nil, err
			}
		case kind == "zset":
			some, err = s.db.ZRange(ctx, key, 0, -1).Result()
			if err != nil {
				return nil, nil, err
			}
		}
		ids = append(ids, some...)
	}
	active, err = s.db.LRange(ctx, s.key("bull:submit:active"), 0, -1).Result()
	return ids, active, err
}

func (s *redisSource) Mail(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		ids, active, err := s.jobs(ctx)
		if err != nil {
			yield(Message{}, s.failed(err))
			return
		}
		for _, id := range ids {
			if m, err := s.message(ctx, id); !yield(m, err) {
				return
			}
		}
		for _, id := range active {
			if !yield(Message{}, unfit(id, "EmailEngine is sending it; when it has, and it is queued again, repeat the command")) {
				return
			}
		}
	}
}

// unfit is the reason that a message can't be taken.
func unfit(id, why string, args ...any) error {
	return &Unfit{"message", id, fmt.Sprintf(why, args...)}
}

// job is what a job of the queue says of its message.
type job struct {
	Account string `json:"account"`
	QueueID string `json:"queueId"`
	Old     string `json:"qId"` // the name of queueId in old versions
}

// payload is a queued message, without its content.
type payload struct {
	Gateway      string          `json:"gateway"`
	Envelope     envelope        `json:"envelope"`
	SendAt       any             `json:"sendAt"` // milliseconds, or false
	DSN          object[api.DSN] `json:"dsn"`
	Proxy        string          `json:"proxy"`
	LocalAddress string          `json:"localAddress"`
}

// envelope is the sender and recipients. From may be false.
type envelope struct {
	From any                   `json:"from"`
	To   api.OneOrMany[string] `json:"to"`
}

func (s *redisSource) message(ctx context.Context, id string) (Message, error) {
	hash, err := s.db.HMGet(ctx, s.key("bull:submit:"+id), "data", "opts", "atm", "attemptsMade").Result()
	if err != nil {
		return Message{}, s.failed(err)
	}
	var j job
	if text, ok := hash[0].(string); !ok || json.Unmarshal([]byte(text), &j) != nil {
		return Message{}, unfit(id, "its job can't be read")
	}
	j.QueueID = cmp.Or(j.QueueID, j.Old, id)
	raw, err := s.db.HGet(ctx, s.key("iaq:"+j.Account), j.QueueID).Bytes()
	if err == redis.Nil {
		return Message{}, unfit(id, "its content is gone; EmailEngine would not send it either")
	}
	if err != nil {
		return Message{}, s.failed(err)
	}
	m, err := readMessage(j, raw)
	if err != nil {
		return Message{}, unfit(id, "its content can't be read: %v", err)
	}
	m.Submit.DeliveryAttempts = left(hash[1:])
	return m, nil
}

// left returns the number of attempts that are left; 0: as the settings say. hash has the options of a job
// and the attempts made, under their present name and the former one.
func left(hash []any) int {
	var opts struct{ Attempts int }
	text, _ := hash[0].(string)
	if json.Unmarshal([]byte(text), &opts) != nil || opts.Attempts == 0 {
		return 0
	}
	made := 0
	for _, v := range hash[1:] {
		text, _ := v.(string)
		n, _ := strconv.Atoi(text)
		made = max(made, n)
	}
	return min(max(opts.Attempts-made, 1), 100)
}

// readMessage decodes a queued message. It goes as EmailEngine composed it: with its tracking links, and
// without new ones.
func readMessage(j job, raw []byte) (Message, error) {
	var content []byte
	var p payload
	var wrong error
	err := unpack(raw, func(v any) {
		all, _ := v.(map[string]any)
		content, _ = all["raw"].([]byte)
		delete(all, "raw")
		wrong = convert(all, &p)
	})
	if err = cmp.Or(err, wrong); err != nil {
		return Message{}, err
	}
	if len(content) == 0 || len(p.Envelope.To) == 0 {
		return Message{}, fmt.Errorf("it has no content or no recipients")
	}
	from, _ := p.Envelope.From.(string)
	no := false
	m := Message{ID: j.QueueID, Submit: api.SubmitRequest{
		Account: j.Account, Raw: content, Envelope: &api.Envelope{From: from, To: p.Envelope.To},
		Gateway: p.Gateway, Proxy: p.Proxy, LocalAddress: p.LocalAddress, DSN: p.DSN.value,
		IdempotencyKey: "emailengine:" + j.QueueID, TrackOpens: &no, TrackClicks: &no,
	}}
	if ms, ok := p.SendAt.(float64); ok && ms > 0 {
		at := time.UnixMilli(int64(ms)).UTC()
		m.Submit.SendAt = &at
	}
	return m, nil
}
