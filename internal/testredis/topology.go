package testredis

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/testkit"
)

// agreeWithin is how long servers may take to find each other on a machine busy with other tests.
const agreeWithin = time.Minute

// Topology says how many servers work together, and who may use them. The zero value has a master alone, for
// anybody.
type Topology struct {
	Masters  int      // in a Cluster; defaults to 3
	Replicas int      // for each master
	Password string   // the default user's, on servers and Sentinels; empty if none
	Args     []string // for the command line of each server, as in [Server]
}

// Group is some servers at work together. All keep an append-only file and listen on the loopback interface.
type Group struct {
	Masters   []*Process
	Replicas  []*Process // the first master's first
	Sentinels []*Process
	scheme    string
	tail      string // the end of the address
	entrance  []*Process
}

// masterName is what the Sentinels of a test call their master.
const masterName = "mymaster"

// URL is the address to open, for the default user.
func (g *Group) URL() string {
	if password := g.entrance[0].password; password != "" {
		return g.URLFor("", password)
	}
	return g.url("")
}

// URLFor is the address to open for a user. The Sentinels are asked by their own default user.
func (g *Group) URLFor(user, password string) string { return g.url(user + ":" + password + "@") }

func (g *Group) url(who string) string {
	addrs := make([]string, len(g.entrance))
	for i, p := range g.entrance {
		addrs[i] = p.Addr()
	}
	url := g.scheme + "://" + who + strings.Join(addrs, ",") + g.tail
	if len(g.Sentinels) > 0 && g.Sentinels[0].password != "" {
		url += "?sentinel_password=" + g.Sentinels[0].password
	}
	return url
}

// Servers are all that hold data.
func (g *Group) Servers() []*Process {
	return append(append([]*Process{}, g.Masters...), g.Replicas...)
}

// AddUser makes a user with a password on every server, with rules as ACL SETUSER takes them.
func (g *Group) AddUser(t testing.TB, name, password string, rules ...string) {
	t.Helper()
	for _, p := range g.Servers() {
		p.AddUser(t, name, password, rules...)
	}
}

// AddUser makes a user with a password, with rules as ACL SETUSER takes them.
func (p *Process) AddUser(t testing.TB, name, password string, rules ...string) {
	t.Helper()
	if err := p.Client(t).ACLSetUser(t.Context(), name, append([]string{"on", ">" + password},
		rules...)...).Err(); err != nil {
		t.Fatal(err)
	}
}

// Replicated is a master with replicas that are in step, at least one.
func Replicated(t testing.TB, o Topology) *Group {
	t.Helper()
	g := &Group{scheme: "redis", Masters: []*Process{o.server(t)}}
	g.entrance = g.Masters
	for range max(1, o.Replicas) {
		g.Replicas = append(g.Replicas, o.server(t, "--replicaof", "127.0.0.1", fmt.Sprint(g.Masters[0].port)))
	}
	inStep(t, g.Masters[0], len(g.Replicas))
	return g
}

// server starts one that listens on its own port.
func (o Topology) server(t testing.TB, args ...string) *Process {
	t.Helper()
	return o.serverAt(t, testkit.FreePort(t), args...)
}

func (o Topology) serverAt(t testing.TB, port int, args ...string) *Process {
	t.Helper()
	all := []string{"--appendonly", "yes", "--appendfsync", "everysec", "--repl-diskless-sync-delay", "0"}
	if o.Password != "" {
		all = append(all, "--masterauth", o.Password)
	}
	return keep(t, &Process{port: port, password: o.Password, args: append(append(all, o.Args...), args...)})
}

// inStep waits until a master has so many replicas that have everything.
func inStep(t testing.TB, master *Process, replicas int) {
	t.Helper()
	c := master.Client(t)
	until(t, fmt.Sprintf("%d replicas in step", replicas), func() bool {
		return strings.Count(c.Info(t.Context(), "replication").Val(), "state=online") == replicas
	})
}

// Sentinel is a master with replicas, at least one, and three Sentinels that agree to replace it when it has
// been silent for a second.
func Sentinel(t testing.TB, o Topology) *Group {
	t.Helper()
	g := Replicated(t, o)
	g.scheme, g.tail = "redis+sentinel", "/"+masterName
	for range 3 {
		g.Sentinels = append(g.Sentinels, o.sentinel(t, g.Masters[0]))
	}
	g.entrance = g.Sentinels
	for _, s := range g.Sentinels {
		c := redis.NewSentinelClient(&redis.Options{Addr: s.Addr(), Password: o.Password})
		t.Cleanup(func() { _ = c.Close() })
		until(t, "the Sentinels to know each other and the replicas", func() bool {
			known, err := c.Master(t.Context(), masterName).Result()
			replicas, errReplicas := c.Replicas(t.Context(), masterName).Result()
			if err != nil || errReplicas != nil || known["num-other-sentinels"] != "2" ||
				len(replicas) != len(g.Replicas) {
				return false
			}
			for _, r := range replicas {
				if r["master-link-status"] != "ok" {
					return false
				}
			}
			return true
		})
	}
	return g
}

// sentinel starts one that watches a master. It keeps what it learns in its own file, so it can't do without
// one.
func (o Topology) sentinel(t testing.TB, master *Process) *Process {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2\nsentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 5000\n",
		masterName, master.port)
	if o.Password != "" {
		text += fmt.Sprintf("sentinel auth-pass %s %s\nsentinel sentinel-pass %[2]s\n", masterName, o.Password)
	}
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return keep(t, &Process{port: testkit.FreePort(t), password: o.Password, config: conf,
		args: []string{"--sentinel"}})
}

// slots is how many a Cluster has.
const slots = 16384

// Cluster is masters that share all slots evenly, with their replicas.
func Cluster(t testing.TB, o Topology) *Group {
	t.Helper()
	o.Masters = cmp.Or(o.Masters, 3)
	g := &Group{scheme: "redis+cluster"}
	for i := range o.Masters {
		p := o.node(t)
		if err := p.Client(t).ClusterAddSlotsRange(t.Context(), i*slots/o.Masters,
			(i+1)*slots/o.Masters-1).Err(); err != nil {
			t.Fatal(err)
		}
		g.Masters = append(g.Masters, p)
	}
	for range o.Masters * o.Replicas {
		g.Replicas = append(g.Replicas, o.node(t))
	}
	g.entrance = g.Masters
	g.meet(t)
	for i, p := range g.Replicas {
		follow(t, p, g.Masters[i/o.Replicas])
	}
	for _, p := range g.Masters {
		inStep(t, p, o.Replicas)
	}
	return g
}

// node starts a server for a Cluster, whose members talk to each other on a second port.
func (o Topology) node(t testing.TB) *Process {
	t.Helper()
	return o.serverAt(t, testkit.PortPair(t, 10000), "--cluster-enabled", "yes")
}

// meet makes all servers members of one Cluster.
func (g *Group) meet(t testing.TB) {
	t.Helper()
	all := g.Servers()
	first := all[0].Client(t)
	for _, p := range all[1:] {
		if err := first.ClusterMeet(t.Context(), "127.0.0.1", fmt.Sprint(p.port)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range all {
		c := p.Client(t)
		until(t, "the cluster to agree", func() bool {
			info := c.ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(all)))
		})
	}
}

// follow makes a member of a Cluster the replica of another.
func follow(t testing.TB, p, master *Process) {
	t.Helper()
	id, err := master.Client(t).ClusterMyID(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Client(t).ClusterReplicate(t.Context(), id).Err(); err != nil {
		t.Fatal(err)
	}
}

// Promote makes a replica the master that it is not yet, as a failover does.
func (p *Process) Promote(t testing.TB) {
	t.Helper()
	if err := p.Client(t).ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), agreeWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %s in vain for %s", agreeWithin, what)
		}
	}
}
