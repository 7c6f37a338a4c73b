package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/testkit"
)

const (
	masters     = 3
	slots       = 16384 // of a Redis Cluster
	agreeWithin = time.Minute
)

// StartCluster creates a directory as MakeDir does, starts a Redis Cluster of three masters without replicas
// in it, with more arguments, and returns the address of the Cluster for a Postroom.
func (r *Rig) StartCluster(ctx context.Context, in, prefix string, more ...string) (url string, err error) {
	if err := r.MakeDir(in, prefix); err != nil {
		return "", err
	}
	var nodes []*redis.Client
	var addrs []string
	for n := range masters {
		node, addr, bus, err := r.startNode(n, more)
		if err != nil {
			return "", err
		}
		if err := Until(ctx, time.Minute, 20*time.Millisecond, func() (bool, error) {
			return node.Ping(ctx).Err() == nil, nil
		}); err != nil {
			return "", fmt.Errorf("start node %d of the Cluster: %w", n, err)
		}
		if err := node.ClusterAddSlotsRange(ctx, n*slots/masters, (n+1)*slots/masters-1).Err(); err != nil {
			return "", fmt.Errorf("give slots to node %d: %w", n, err)
		}
		if n > 0 {
			host, port, _ := strings.Cut(addr, ":")
			if err := nodes[0].Do(ctx, "cluster", "meet", host, port, bus).Err(); err != nil {
				return "", fmt.Errorf("have the nodes meet: %w", err)
			}
		}
		nodes, addrs = append(nodes, node), append(addrs, addr)
	}
	for n, node := range nodes {
		if err := Until(ctx, agreeWithin, 50*time.Millisecond, func() (bool, error) {
			info := node.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", masters)), nil
		}); err != nil {
			return "", fmt.Errorf("node %d does not agree with the others of the Cluster: %w", n, err)
		}
	}
	return "redis+cluster://" + strings.Join(addrs, ","), nil
}

// startNode starts a node that does not know the others yet.
func (r *Rig) startNode(n int, more []string) (node *redis.Client, addr string, bus int, err error) {
	dir := filepath.Join(r.Dir, fmt.Sprintf("redis-%d", n+1))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", 0, err
	}
	port, release, err := testkit.HoldPort()
	if err != nil {
		return nil, "", 0, err
	}
	r.OnClose(release)
	if bus, release, err = testkit.HoldPort(); err != nil {
		return nil, "", 0, err
	}
	r.OnClose(release)
	cmd, socket := RedisCommand(dir, append([]string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1",
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", fmt.Sprint(bus)},
		more...)...)
	p, _, err := Start(cmd, filepath.Join(dir, "log"))
	if err != nil {
		return nil, "", 0, fmt.Errorf("redis-server is needed: %w", err)
	}
	r.OnClose(p.Stop)
	node = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DisableIdentity: true})
	r.OnClose(func() { _ = node.Close() })
	return node, fmt.Sprintf("127.0.0.1:%d", port), bus, nil
}
