package app_test

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/testredis"
)

// The users that docs/redis.md has operators create, and the password of all others.
const (
	aclUser, aclPassword = "postroom", "mail/42?" // both signs must be escaped in a URL
	otherPassword        = "hunter2"
)

// TestSmallestRedisUser runs everything as the user that docs/redis.md describes, in every topology with
// Redis users.
func TestSmallestRedisUser(t *testing.T) {
	t.Parallel()
	locked := testredis.Topology{Password: otherPassword}
	for name, row := range map[string]struct {
		start    func(testing.TB, testredis.Topology) *testredis.Group
		topology testredis.Topology
		settings map[string]string
	}{
		"one server, and a replica": {testredis.Replicated, locked, map[string]string{"redis.waitReplicas": "1",
			"redis.waitTimeout": "5s"}},
		"Sentinels": {testredis.Sentinel, locked, map[string]string{"redis.partitions": "2"}},
		"a Cluster": {testredis.Cluster, locked, map[string]string{"redis.partitions": "6"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := row.start(t, row.topology)
			g.AddUser(t, aclUser, aclPassword, documentedRules(t, aclUser)...)
			address := g.URLFor(aclUser, strings.NewReplacer("/", "%2F", "?", "%3F").Replace(aclPassword))
			for _, s := range g.Sentinels {
				s.AddUser(t, "watcher", aclPassword, documentedRules(t, "watcher")...)
				address = strings.Replace(address, "?sentinel_password="+otherPassword,
					"?sentinel_user=watcher&sentinel_password="+url.QueryEscape(aclPassword), 1)
			}
			row.settings["redis.url"] = address
			everything(t, row.settings)
			for _, p := range append(g.Servers(), g.Sentinels...) {
				log, err := p.Client(t).ACLLog(t.Context(), 100).Result()
				if err != nil {
					t.Fatal(err)
				}
				for _, refused := range log {
					t.Errorf("%s was refused %d times: %s %s", refused.Username, refused.Count, refused.Reason,
						refused.Object)
				}
			}
		})
	}
}

// documentedRules reads a user's rules from the page that operators copy them from.
func documentedRules(t *testing.T, user string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)ACL SETUSER ` + user + ` on '>[^']+' (.+?)\n` + "```").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/redis.md has no ACL SETUSER", user)
	}
	return strings.Fields(strings.NewReplacer("\\", "", "'", "").Replace(string(found[1])))
}
