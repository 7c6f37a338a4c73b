package emailengine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/postroom/postroom/api"
)

type redisSource struct {
	db     *redis.Client
	prefix string // of keys, with its colon
	opener
}

func openRedis(o Options) (*redisSource, error) {
	options, err := redis.ParseURL(o.From)
	if err != nil {
		return nil, &addressError{}
	}
	options.DisableIdentity = true
	prefix := strings.TrimSuffix(strings.TrimSpace(o.Prefix), ":")
	if prefix != "" {
		prefix += ":"
	}
	return &redisSource{db: redis.NewClient(options), prefix: prefix, opener: opener{o.Secret}}, nil
}

func (s *redisSource) Close() error { return s.db.Close() }

// key returns the name of a key.
func (s *redisSource) key(name string) string { return s.prefix + name }

// failed adds the address of the Redis to an error.
func (s *redisSource) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read EmailEngine's Redis at %s: %w", s.db.Options().Addr, err)
}

// members returns a set in order.
func (s *redisSource) members(ctx context.Context, name string) ([]string, error) {
	list, err := s.db.SMembers(ctx, s.key(name)).Result()
	slices.Sort(list)
	return list, s.failed(err)
}

// Read implements Source. A Redis without any data of EmailEngine is an error: the prefix or the number of
// the database is wrong.
func (s *redisSource) Read(ctx context.Context) (*Found, error) {
	settings, err := s.db.HGetAll(ctx, s.key("settings")).Result()
	if err != nil {
		return nil, s.failed(err)
	}
	if len(settings) == 0 {
		return nil, s.failed(fmt.Errorf("it has no hash %s: are the number of the database (redis://…/8) and --prefix right?", s.key("settings")))
	}
	v := values{}
	for _, name := range settingNames() {
		if json.Valid([]byte(settings[name])) {
			v[name] = json.RawMessage(settings[name])
		}
	}
	f, r := &Found{}, v.relays(s.opener)
	v.into(f)
	for _, step := range []func(context.Context, *Found, relays) error{s.accounts, s.gateways} {
		if err := step(ctx, f, r); err != nil {
			return nil, err
		}
	}
	for _, step := range []func(context.Context, *Found) error{s.templates, s.lists, s.routes} {
		if err := step(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// accounts reads the hashes of accounts: some fields are JSON, the others text.
func (s *redisSource) accounts(ctx context.Context, f *Found, r relays) error {
	ids, err := s.members(ctx, "ia:accounts")
	if err != nil {
		return err
	}
	for _, id := range ids {
		hash, err := s.db.HGetAll(ctx, s.key("iad:"+id)).Result()
		if err != nil {
			return s.failed(err)
		}
		f.account(id, func(a *account) error {
			a.Name, a.Email, a.Webhooks, a.Proxy = hash["name"], hash["email"], hash["webhooks"], hash["proxy"]
			a.EHLOName, a.Locale, a.TZ = hash["smtpEhloName"], hash["locale"], hash["tz"]
			for name, at := range map[string]any{"smtp": &a.SMTP, "imap": &a.IMAP, "oauth2": &a.OAuth2,
				"webhooksCustomHeaders": &a.Headers} {
				if text := hash[name]; text != "" {
					if err := json.Unmarshal([]byte(text), at); err != nil {
						return fmt.Errorf("its field %s can't be read", name) // without the error, which quotes it
					}
				}
			}
			return nil
		}, r)
	}
	return nil
}

// gateways reads the hashes of gateways: pass and gateway are text, the others MessagePack.
func (s *redisSource) gateways(ctx context.Context, f *Found, r relays) error {
	ids, err := s.members(ctx, "gateways")
	if err != nil {
		return err
	}
	for _, id := range ids {
		hash, err := s.db.HGetAll(ctx, s.key("gateway:"+id)).Result()
		if err != nil {
			return s.failed(err)
		}
		f.gateway(id, func(g *gateway) error {
			all := map[string]any{"pass": hash["pass"]}
			for _, name := range []string{"name", "host", "port", "secure", "user"} {
				if text, ok := hash[name]; ok {
					if err := unpack([]byte(text), func(v any) { all[name] = v }); err != nil {
						return fmt.Errorf("its field %s can't be read: %w", name, err)
					}
				}
			}
			return convert(all, g)
		}, r)
	}
	return nil
}

// templates reads the templates of everybody and of each account.
func (s *redisSource) templates(ctx context.Context, f *Found) error {
	accounts, err := s.members(ctx, "ia:accounts")
	if err != nil {
		return err
	}
	for _, account := range append([]string{""}, accounts...) {
		ids, err := s.members(ctx, "tpl:"+account+":i")
		if err != nil {
			return err
		}
		for _, id := range ids {
			parts, err := s.db.HMGet(ctx, s.key("tpl:"+account+":c"), id+":meta", id+":content").Result()
			if err != nil {
				return s.failed(err)
			}
			f.template(id, func(t *api.TemplateRequest) error {
				for i, at := range []any{t, &t.Content} {
					text, _ := parts[i].(string)
					var err error
					if wrong := unpack([]byte(text), func(v any) { err = convert(v, at) }); wrong != nil || err != nil {
						return fmt.Errorf("its content can't be read: %w", cmp.Or(wrong, err))
					}
				}
				if account != "" {
					t.Account = &account
				}
				return nil
			})
		}
	}
	return nil
}

// lists reads the names of the blocklists and counts their addresses.
func (s *redisSource) lists(ctx context.Context, f *Found) error {
	names, err := s.db.HKeys(ctx, s.key("lists:unsub:lists")).Result()
	if err != nil {
		return s.failed(err)
	}
	slices.Sort(names)
	for _, name := range names {
		n, err := s.db.HLen(ctx, s.key("lists:unsub:entries:"+name)).Result()
		if err != nil {
			return s.failed(err)
		}
		f.Lists = append(f.Lists, api.Blocklist{ListID: name, Count: int(n)})
	}
	return nil
}

// routes names the webhook routes.
func (s *redisSource) routes(ctx context.Context, f *Found) error {
	ids, err := s.members(ctx, "wh:i")
	for _, id := range ids {
		f.Unfit = append(f.Unfit, Unfit{"webhook route", id, noRoutes})
	}
	return err
}

const noRoutes = "its filter is a program; make an endpoint: postroom webhook add --help"

// Blocked implements Source. An entry that can't be read is taken by its address alone.
func (s *redisSource) Blocked(ctx context.Context, list string) iter.Seq2[Blocked, error] {
	return func(yield func(Blocked, error) bool) {
		scan := s.db.HScan(ctx, s.key("lists:unsub:entries:"+list), 0, "", 1000).Iterator()
		for scan.Next(ctx) {
			var b Blocked
			address := scan.Val()
			if !scan.Next(ctx) {
				break
			}
			_ = json.Unmarshal([]byte(scan.Val()), &b)
			if b.Recipient = address; !yield(b, nil) {
				return
			}
		}
		if err := scan.Err(); err != nil {
			yield(Blocked{}, s.failed(err))
		}
	}
}

// unpack decodes the first MessagePack value. What follows it is ignored, as EmailEngine does.
func unpack(raw []byte, take func(any)) (err error) {
	v, err := msgpack.NewDecoder(bytes.NewReader(raw)).DecodeInterfaceLoose()
	if err == nil {
		take(v)
	}
	return err
}

// convert gives a decoded value to the fields of a struct, by their names in JSON.
func convert(v, at any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, at)
}
