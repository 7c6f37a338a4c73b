package redisdb

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Durability describes what an acknowledged write survives on the Redis in use, as far as the server reports
// it. In a Cluster it is the weakest master's.
type Durability struct {
	Mode       Mode   `json:"mode"`
	Version    string `json:"version,omitempty"`
	Persistent bool   `json:"persistent"` // a restart of Redis loses little or nothing
	AOF        bool   `json:"aof"`        // the append-only file is on
	// when that file is forced to disk: always, everysec, no; empty if unknown
	Fsync string `json:"fsync,omitempty"`
	// the rules for RDB snapshots, such as "3600 1 300 100"; empty if there are none, or unknown
	Snapshots   string `json:"snapshots,omitempty"`
	MaxMemory   int64  `json:"maxMemory"`        // bytes; 0 means no limit
	Policy      string `json:"policy,omitempty"` // maxmemory-policy; empty if unknown
	Replicas    int    `json:"replicas"`         // connected replicas that keep up
	MinReplicas int    `json:"minReplicas"`      // replicas without which a write is refused
	// replicas that are waited for before a message is accepted (Options.WaitReplicas)
	Waited int `json:"waitReplicas"`
	// why writes are refused at present, in one sentence; empty if they are not
	Refusal string `json:"refusal,omitempty"`
	// problems, each in one sentence for the operator; empty if all is well
	Warnings []string `json:"warnings,omitempty"`
}

// Durability reads the configuration of Redis. If a hosted Redis forbids CONFIG, only INFO is used. It
// fails if Redis cannot be queried.
func (db *DB) Durability(ctx context.Context) (Durability, error) {
	var mu sync.Mutex
	var all []Durability
	err := db.eachMaster(ctx, func(ctx context.Context, c redis.Cmdable) error {
		d, err := askDurability(ctx, c, db.mode, db.wait.replicas)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, d)
		return err
	})
	if err != nil {
		return Durability{}, fmt.Errorf("ask redis how durable it is: %w", err)
	}
	if len(all) == 0 {
		return Durability{}, fmt.Errorf("ask redis how durable it is: %s has no master", db.address)
	}
	return weakest(all), nil
}

// askDurability queries one server.
func askDurability(ctx context.Context, c redis.Cmdable, mode Mode, waited int) (Durability, error) {
	info, err := infoOf(ctx, c, "server", "persistence", "memory", "replication")
	if err != nil {
		return Durability{}, err
	}
	config := make(map[string]string)
	for _, name := range []string{"save", "appendfsync", "min-replicas-to-write"} {
		values, err := c.ConfigGet(ctx, name).Result()
		if Unavailable(err) {
			return Durability{}, err
		}
		for name, value := range values { // none when CONFIG is forbidden
			config[name] = value
		}
	}
	return judge(mode, info, config, waited), nil
}

// judge builds the Durability of a server from its INFO and CONFIG.
func judge(mode Mode, info, config map[string]string, waited int) Durability {
	save, known := config["save"]
	d := Durability{
		Mode: mode, Version: info["redis_version"],
		AOF: info["aof_enabled"] == "1", Fsync: config["appendfsync"], Snapshots: save,
		MaxMemory: number(info, "maxmemory"), Policy: info["maxmemory_policy"],
		Replicas: goodReplicas(info), Waited: waited,
	}
	d.MinReplicas, _ = strconv.Atoi(config["min-replicas-to-write"])
	if !d.AOF {
		d.Fsync = ""
	}
	d.Persistent = d.AOF || save != ""
	d.Refusal = d.refusal(info)
	d.Warnings = d.faults(known, info)
	return d
}

// refusal returns why writes are refused at present, or "".
func (d Durability) refusal(info map[string]string) string {
	switch {
	case info["role"] == "slave":
		return "This Redis is a replica and refuses writes: point redis.url at its master, or use redis+sentinel://."
	case d.Replicas < d.MinReplicas:
		return fmt.Sprintf("Redis refuses writes: %d replicas keep up, and min-replicas-to-write is %d.",
			d.Replicas, d.MinReplicas)
	case d.Replicas < d.Waited:
		return fmt.Sprintf("New mail is refused: %d replicas keep up, and redis.waitReplicas is %d.", d.Replicas,
			d.Waited)
	}
	return ""
}

// faults lists what an operator should change.
func (d Durability) faults(known bool, info map[string]string) []string {
	var w []string
	if d.Refusal != "" {
		w = append(w, d.Refusal)
	}
	switch {
	case d.AOF && d.Fsync == "no":
		w = append(w, "The append-only file is written to disk when the system likes (appendfsync no): a power cut may lose half a minute of accepted mail. Set appendfsync everysec or always.")
	case d.AOF:
	case d.Snapshots != "":
		w = append(w, "Redis keeps snapshots only (appendonly no): a crash loses all mail accepted since the last one. Set appendonly yes.")
	case known && d.Replicas > 0:
		w = append(w, "Redis writes nothing to disk (appendonly no): accepted mail survives only as long as a replica does. Set appendonly yes.")
	case known:
		w = append(w, "Redis writes nothing to disk (appendonly no, save empty): a restart loses all accepted mail. Set appendonly yes.")
	default:
		w = append(w, "Redis has no append-only file, and doesn't report whether it keeps snapshots: a crash may lose accepted messages. Set appendonly yes.")
	}
	if d.Policy != "" && d.Policy != "noeviction" {
		w = append(w, fmt.Sprintf(
			"Redis may throw mail away when memory is short (maxmemory-policy %s). Set maxmemory-policy noeviction.",
			d.Policy))
	}
	if info["aof_last_write_status"] == "err" {
		w = append(w, "The last write to the append-only file failed: is the disk full?")
	}
	if info["aof_last_bgrewrite_status"] == "err" {
		w = append(w, "The last rewrite of the append-only file failed: is the disk or the memory full?")
	}
	if d.Snapshots != "" && info["rdb_last_bgsave_status"] == "err" {
		w = append(w, "The last snapshot failed: is the disk or the memory full?")
	}
	return w
}

// weakest merges the results of a Cluster's masters into the one that protects least, with the warnings of
// all.
func weakest(all []Durability) Durability {
	worst := all[0]
	seen := make(map[string]bool)
	var warnings []string
	refusal := ""
	for _, d := range all {
		if d.strength() < worst.strength() {
			worst = d
		}
		refusal = cmp.Or(refusal, d.Refusal)
		for _, w := range d.Warnings {
			if !seen[w] {
				seen[w] = true
				warnings = append(warnings, w)
			}
		}
	}
	worst.Warnings, worst.Refusal = warnings, refusal
	return worst
}

// strength orders servers by the losses they protect against: power cuts first, then the loss of a machine.
func (d Durability) strength() int {
	s := min(d.Replicas, max(1, d.Waited, d.MinReplicas))
	switch {
	case d.AOF && d.Fsync == "always":
		s += 300
	case d.AOF:
		s += 200
	case d.Persistent:
		s += 100
	}
	return s
}

// String describes in one line what a write survives.
func (d Durability) String() string {
	parts := []string{string(d.Mode)}
	switch {
	case d.AOF && d.Fsync == "always":
		parts = append(parts, "append-only file synced before each answer: a power cut loses nothing")
	case d.AOF && d.Fsync == "everysec":
		parts = append(parts, "append-only file synced every second: a power cut loses up to two seconds; a crash of Redis alone loses nothing while the disk keeps up")
	case d.AOF:
		parts = append(parts, "append-only file")
	case d.Snapshots != "":
		parts = append(parts, "snapshots only: a crash loses everything after the last one")
	default:
		parts = append(parts, "no persistence reported")
	}
	switch {
	case d.Waited > 0:
		parts = append(parts, fmt.Sprintf(
			"replicas: %d, waited for: %d: what is accepted survives the loss of the master", d.Replicas, d.Waited))
	case d.MinReplicas > 0:
		parts = append(parts, fmt.Sprintf("replicas: %d, needed for a write: %d", d.Replicas, d.MinReplicas))
	case d.Replicas > 0:
		parts = append(parts, fmt.Sprintf("replicas: %d", d.Replicas))
	case d.Mode != Embedded:
		parts = append(parts, "no replicas: what is on its disk is lost with its disk")
	}
	return strings.Join(parts, "; ")
}
