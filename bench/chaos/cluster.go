package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testproxy"
)

const (
	masters   = 3
	nodeCount = 2 * masters // each master has a replica
	slots     = 16384       // in a Redis Cluster
	// nodeTimeout is how long a node is silent until the others replace it.
	nodeTimeout = 2 * time.Second
	// agreeWithin is how long the nodes may take to find each other, or to be in step again.
	agreeWithin = time.Minute
	// password is the password of every Postroom process. Each has its own user name.
	password = "chaos"
	// rights are those that docs/redis.md names for the user of Postroom.
	rights = "~postroom:* ~asynq:* &asynq:* +@read +@write +@transaction -@dangerous +eval +evalsha" +
		" +publish +subscribe +time +wait +hello +ping +select +client|setname +command +info +config|get" +
		" +cluster|slots"
)

// cluster is six redis-servers, each behind a line. The nodes announce their lines, so that everybody comes
// through them: Postroom, the observer, and the replicas to their masters. Only the bus between the nodes is
// direct.
type cluster struct {
	nodes []*node
	users string // an ACL file with the users of all processes
}

// node is a redis-server of the Cluster. One that was killed comes back under its id.
type node struct {
	*program
	line   *testproxy.Proxy
	bus    int           // port on which it talks to the other nodes
	direct *redis.Client // over its own socket
}

// openCluster starts the nodes, and returns when they agree and every master has its replica.
func (h *testbed) openCluster(ctx context.Context) error {
	h.cluster = &cluster{users: filepath.Join(h.dir, "users.acl")}
	users := "user default on nopass ~* &* +@all\n"
	for _, name := range h.names() {
		users += fmt.Sprintf("user %s on >%s resetkeys resetchannels -@all %s\n", name, password, rights)
	}
	if err := os.WriteFile(h.cluster.users, []byte(users), 0o600); err != nil {
		return err
	}
	for n := range nodeCount {
		if err := h.addNode(n); err != nil {
			return err
		}
	}
	for _, n := range h.cluster.nodes {
		if err := n.await(ctx); err != nil {
			return err
		}
	}
	if err := h.cluster.join(ctx); err != nil {
		return err
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: h.cluster.addrs(), ReadTimeout: readWithin,
		DisableIdentity: true})
	h.OnClose(func() { _ = rdb.Close() })
	h.redis = newObserver(rdb, h.o.partitions, h.ledger)
	return nil
}

// addNode starts a node, which does not know the others yet.
func (h *testbed) addNode(number int) (err error) {
	n, name := &node{}, fmt.Sprintf("redis-%d", number+1)
	home := filepath.Join(h.dir, name)
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	bus, release, err := testkit.HoldPort()
	if err != nil {
		return err
	}
	n.bus = bus
	h.OnClose(release)
	_, socket := rig.RedisCommand(home)
	if n.line, err = h.line("unix", socket); err != nil {
		return err
	}
	n.direct = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, MaxRetries: -1,
		ReadTimeout: readWithin, DisableIdentity: true})
	h.OnClose(func() { _ = n.direct.Close() })
	args := n.arguments(h.cluster.users)
	n.program, err = newProgram(h.dir, name, h.ledger, func() *exec.Cmd {
		cmd, _ := rig.RedisCommand(home, args...)
		return cmd
	}, func(ctx context.Context, _ *bufio.Reader) error { return ping(ctx, n.direct) })
	if err != nil {
		return err
	}
	h.cluster.nodes, h.servers = append(h.cluster.nodes, n), append(h.servers, n.program)
	h.start(n.program)
	return nil
}

// arguments make a redis-server a node that writes each change to disk before its reply. As the manual
// advises, it refuses writes while it has no replica.
func (n *node) arguments(users string) []string {
	_, port, _ := net.SplitHostPort(n.line.Addr())
	bus := fmt.Sprint(n.bus)
	return []string{
		"--bind", "127.0.0.1", "--appendfsync", "always", "--aclfile", users, "--repl-diskless-sync-delay", "0",
		"--min-replicas-to-write", "1", "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", fmt.Sprint(nodeTimeout.Milliseconds()), "--cluster-port", bus,
		"--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", port,
		"--cluster-announce-bus-port", bus,
	}
}

// join makes the nodes one Cluster: the first half are masters that share all slots, each of the others is a
// replica.
func (c *cluster) join(ctx context.Context) error {
	for i, n := range c.nodes[:masters] {
		if err := n.direct.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
			return fmt.Errorf("give slots to %s: %w", n.name, err)
		}
	}
	first := c.nodes[0]
	for _, n := range c.nodes[1:] {
		host, port, _ := net.SplitHostPort(n.line.Addr())
		if err := first.direct.Do(ctx, "cluster", "meet", host, port, n.bus).Err(); err != nil {
			return fmt.Errorf("have %s meet %s: %w", first.name, n.name, err)
		}
	}
	if err := c.until(ctx, "agree", func(n *node) bool {
		info := n.direct.ClusterInfo(ctx).Val()
		return strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", nodeCount))
	}); err != nil {
		return err
	}
	for i, n := range c.nodes[masters:] {
		id, err := c.nodes[i].direct.ClusterMyID(ctx).Result()
		if err == nil {
			err = n.direct.ClusterReplicate(ctx, id).Err()
		}
		if err != nil {
			return fmt.Errorf("have %s follow %s: %w", n.name, c.nodes[i].name, err)
		}
	}
	return c.inStep(ctx)
}

// inStep waits until the Cluster serves all slots, and every master has a replica that keeps up.
func (c *cluster) inStep(ctx context.Context) error {
	return c.until(ctx, "be in step", func(n *node) bool {
		role := n.role(ctx)
		return (role == replicated || role == replica) &&
			strings.Contains(n.direct.ClusterInfo(ctx).Val(), "cluster_state:ok")
	})
}

// until waits until something holds for every node.
func (c *cluster) until(ctx context.Context, what string, ok func(*node) bool) error {
	for _, n := range c.nodes {
		if err := rig.Until(ctx, agreeWithin, 50*time.Millisecond, func() (bool, error) {
			return ok(n), nil
		}); err != nil {
			return fmt.Errorf("%s does not %s with the other nodes of the Cluster: %w, see %s", n.name, what, err,
				n.log.Name())
		}
	}
	return nil
}

// addrs are the addresses that clients know.
func (c *cluster) addrs() []string {
	out := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		out[i] = n.line.Addr()
	}
	return out
}

// url is the address of the Cluster for a process.
func (c *cluster) url(user string) string {
	return fmt.Sprintf("redis+cluster://%s:%s@%s", user, password, strings.Join(c.addrs(), ","))
}

// login is what a connection of a process says first, and no other connection.
func login(user string) string {
	return "\r\n" + user + "\r\n" + fmt.Sprintf("$%d\r\n", len(password)) + password
}

// role is what a node does at the moment.
type role int

const (
	gone       role = iota // or starting
	replica                // that follows its master
	lagging                // a replica that does not
	replicated             // a master with a replica that keeps up
	alone                  // a master without
)

func (n *node) role(ctx context.Context) role {
	info, err := n.direct.Info(ctx, "replication").Result()
	switch {
	case err != nil:
		return gone
	case strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up"):
		return replica
	case strings.Contains(info, "role:slave"):
		return lagging
	case strings.Contains(info, "state=online"):
		return replicated
	}
	return alone
}
