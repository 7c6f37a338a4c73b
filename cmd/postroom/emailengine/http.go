package emailengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// pageSize is the largest page of EmailEngine's API.
const pageSize = 1000

const maxAnswer = 256 << 20

// apiSource is the API of an EmailEngine. It shows no secrets and no content of queued mail.
type apiSource struct {
	base, token string
	http        *http.Client
}

func openAPI(u *url.URL, token string) *apiSource {
	return &apiSource{base: strings.TrimRight(u.String(), "/"), token: token,
		http: &http.Client{Timeout: 2 * time.Minute}}
}

func (s *apiSource) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// refused is an answer that is no success.
type refused struct {
	status  int
	message string
}

func (r *refused) Error() string {
	text := fmt.Sprintf("it answers %d: %s", r.status, r.message)
	if r.status == http.StatusUnauthorized || r.status == http.StatusForbidden {
		text += "; give an access token of EmailEngine that may read everything with --from-token"
	}
	return text
}

func (s *apiSource) get(ctx context.Context, path string, query url.Values, at any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read EmailEngine at %s: %w", path, err)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var problem struct{ Message string }
		_ = json.Unmarshal(body, &problem)
		return &refused{resp.StatusCode, problem.Message}
	}
	if err := json.Unmarshal(body, at); err != nil {
		return fmt.Errorf("is it an EmailEngine? its answer can't be read: %w", err)
	}
	return nil
}

// list iterates over the rows of a list, which are under a name in its pages.
func list[Row any](
	ctx context.Context, s *apiSource, path, name string, query url.Values,
) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if query == nil {
			query = url.Values{}
		}
		query.Set("pageSize", strconv.Itoa(pageSize))
		for page, pages := 0, 1; page < pages; page++ {
			query.Set("page", strconv.Itoa(page))
			var answer map[string]json.RawMessage
			var rows []Row
			err := s.get(ctx, path, query, &answer)
			if err == nil {
				err = cmp.Or(json.Unmarshal(answer["pages"], &pages), json.Unmarshal(answer[name], &rows))
				if err != nil {
					err = fmt.Errorf("read EmailEngine at %s: it gives no list: %w", path, err)
				}
			}
			if err != nil {
				yield(*new(Row), err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// ids returns the ids of all rows of a list.
func (s *apiSource) ids(
	ctx context.Context, path, name, field string, query url.Values,
) (ids []string, err error) {
	for row, err := range list[map[string]any](ctx, s, path, name, query) {
		if err != nil {
			return nil, err
		}
		id, _ := row[field].(string)
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *apiSource) Read(ctx context.Context) (*Found, error) {
	v, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	f, r := &Found{}, v.relays(opener{})
	v.into(f)
	accounts, err := s.ids(ctx, "/v1/accounts", "accounts", "account", nil)
	if err != nil {
		return nil, err
	}
	for _, id := range accounts {
		err := s.one(ctx, "/v1/account/", id, func(raw json.RawMessage) {
			f.account(id, func(a *account) error { return json.Unmarshal(raw, a) }, r)
		})
		if err != nil {
			return nil, err
		}
	}
	gateways, err := s.ids(ctx, "/v1/gateways", "gateways", "gateway", nil)
	if err != nil {
		return nil, err
	}
	for _, id := range gateways {
		err := s.one(ctx, "/v1/gateway/", id, func(raw json.RawMessage) {
			f.gateway(id, func(g *gateway) error { return json.Unmarshal(raw, g) }, r)
		})
		if err != nil {
			return nil, err
		}
	}
	return f, cmp.Or(s.templates(ctx, f, accounts), s.lists(ctx, f), s.routes(ctx, f))
}

// one requests one thing by its id.
func (s *apiSource) one(ctx context.Context, path, id string, take func(json.RawMessage)) error {
	var raw json.RawMessage
	if err := s.get(ctx, path+url.PathEscape(id), nil, &raw); err != nil {
		return err
	}
	take(raw)
	return nil
}

// settings requests each setting by itself: a version that does not know one refuses the whole request.
func (s *apiSource) settings(ctx context.Context) (values, error) {
	v := values{}
	for _, name := range settingNames() {
		answer := values{}
		err := s.get(ctx, "/v1/settings", url.Values{name: {"true"}}, &answer)
		if wrong, ok := errors.AsType[*refused](err); ok && wrong.status == http.StatusBadRequest {
			continue
		}
		if err != nil {
			return nil, err
		}
		v[name] = answer[name]
	}
	return v, nil
}

// templates reads the templates of everybody and of each account.
func (s *apiSource) templates(ctx context.Context, f *Found, accounts []string) error {
	for _, account := range append([]string{""}, accounts...) {
		query := url.Values{}
		if account != "" {
			query.Set("account", account)
		}
		ids, err := s.ids(ctx, "/v1/templates", "templates", "id", query)
		if err != nil {
			return err
		}
		for _, id := range ids {
			err := s.one(ctx, "/v1/templates/template/", id, func(raw json.RawMessage) {
				f.template(id, func(t *api.TemplateRequest) error { return json.Unmarshal(raw, t) })
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// lists reads the names of the blocklists.
func (s *apiSource) lists(ctx context.Context, f *Found) error {
	for row, err := range list[api.Blocklist](ctx, s, "/v1/blocklists", "blocklists", nil) {
		if err != nil {
			return err
		}
		f.Lists = append(f.Lists, row)
	}
	return nil
}

// routes names the webhook routes.
func (s *apiSource) routes(ctx context.Context, f *Found) error {
	ids, err := s.ids(ctx, "/v1/webhookRoutes", "webhooks", "id", nil)
	for _, id := range ids {
		f.Unfit = append(f.Unfit, Unfit{"webhook route", id, noRoutes})
	}
	return err
}

func (s *apiSource) Blocked(ctx context.Context, id string) iter.Seq2[Blocked, error] {
	return list[Blocked](ctx, s, "/v1/blocklist/"+url.PathEscape(id), "addresses", nil)
}

func (s *apiSource) Queue(ctx context.Context) (Queue, error) {
	var answer struct {
		Paused bool
		Jobs   map[string]int
	}
	err := s.get(ctx, "/v1/settings/queue/submit", nil, &answer)
	q := Queue{Paused: answer.Paused}
	for _, n := range answer.Jobs {
		q.Queued += n
	}
	return q, err
}

// Mail implements Source. The API does not show the content of mail, so there is one error for all.
func (s *apiSource) Mail(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if q, err := s.Queue(ctx); err != nil {
			yield(Message{}, err)
		} else if q.Queued > 0 {
			yield(Message{}, unfit("all "+strconv.Itoa(q.Queued), "EmailEngine's API does not show their content; read its Redis: --from redis://…"))
		}
	}
}
