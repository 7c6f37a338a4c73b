package redisdb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	safe := map[string]string{"aof_enabled": "1", "maxmemory_policy": "noeviction", "connected_slaves": "1",
		"redis_version": "7.0.15"}
	with := func(changes ...string) map[string]string {
		m := make(map[string]string)
		for k, v := range safe {
			m[k] = v
		}
		for i := 0; i < len(changes); i += 2 {
			m[changes[i]] = changes[i+1]
		}
		return m
	}
	for name, row := range map[string]struct {
		info, config map[string]string
		persistent   bool
		warnings     []string // a telling part of each
		says         string   // a part of String
	}{
		"everything on": {safe, map[string]string{"appendfsync": "always", "save": "",
			"min-replicas-to-write": "1"}, true, nil, "a power cut loses nothing; replicas: 1, needed for a write: 1"},
		"every second": {safe, map[string]string{"appendfsync": "everysec", "save": ""}, true, nil,
			"a power cut loses up to two seconds"},
		"config forbidden": {safe, nil, true, nil, "append-only file; replicas: 1"},
		"fsync by the system": {safe, map[string]string{"appendfsync": "no", "save": ""}, true,
			[]string{"appendfsync no"}, "append-only file"},
		"snapshots only": {with("aof_enabled", "0"), map[string]string{"appendfsync": "everysec",
			"save": "3600 1"}, true, []string{"snapshots only"}, "snapshots only"},
		"nothing": {with("aof_enabled", "0", "connected_slaves", "0"), map[string]string{"save": ""},
			false, []string{"restart loses all"}, "no persistence"},
		"replicas only": {with("aof_enabled", "0"), map[string]string{"save": ""}, false,
			[]string{"as a replica does"}, "no persistence reported; replicas: 1"},
		"nothing known": {with("aof_enabled", "0"), nil, false, []string{"doesn't report"}, "no persistence"},
		"a replica": {with("role", "slave"), map[string]string{"save": ""}, true,
			[]string{"is a replica"}, ""},
		"alone": {with("connected_slaves", "0"), map[string]string{"save": ""}, true, nil,
			"no replicas"},
		"evicting": {with("maxmemory_policy", "allkeys-lru"), map[string]string{"save": ""}, true,
			[]string{"allkeys-lru"}, ""},
		"disk full": {with("aof_last_write_status", "err", "aof_last_bgrewrite_status", "err"),
			map[string]string{"save": ""}, true, []string{"last write", "last rewrite"}, ""},
		"snapshot failed": {with("rdb_last_bgsave_status", "err"), map[string]string{"save": "3600 1"}, true,
			[]string{"last snapshot"}, ""},
		"snapshot not wanted": {with("rdb_last_bgsave_status", "err"), map[string]string{"save": ""}, true, nil,
			""},
	} {
		t.Run(name, func(t *testing.T) {
			d := judge(Single, row.info, row.config, 0)
			if d.Persistent != row.persistent {
				t.Errorf("persistent %v", d.Persistent)
			}
			if len(d.Warnings) != len(row.warnings) {
				t.Fatalf("warnings %q, want %q", d.Warnings, row.warnings)
			}
			for i, w := range row.warnings {
				if !strings.Contains(d.Warnings[i], w) {
					t.Errorf("warning %q, want one with %q", d.Warnings[i], w)
				}
			}
			if !strings.Contains(d.String(), row.says) {
				t.Errorf("it says %q, want %q", d, row.says)
			}
		})
	}
}

// TestRefusal: which state of the replicas has Redis, or us, refuse new mail.
func TestRefusal(t *testing.T) {
	two := map[string]string{
		"connected_slaves": "2", "aof_enabled": "1",
		"slave0": "ip=10.0.0.2,port=6379,state=online,offset=14,lag=0",
		"slave1": "ip=10.0.0.3,port=6379,state=online,offset=14,lag=1",
	}
	lagging := map[string]string{
		"connected_slaves": "2", "aof_enabled": "1",
		"slave0": "ip=10.0.0.2,port=6379,state=online,offset=14,lag=31",
		"slave1": "ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0",
	}
	for name, row := range map[string]struct {
		info   map[string]string
		min    string
		waited int
		want   string
	}{
		"nothing asked for":       {lagging, "0", 0, ""},
		"enough":                  {two, "2", 2, ""},
		"a replica itself":        {map[string]string{"role": "slave"}, "0", 0, "is a replica"},
		"too few to write":        {lagging, "1", 0, "0 replicas keep up, and min-replicas-to-write is 1"},
		"too few to wait for":     {two, "0", 3, "2 replicas keep up, and redis.waitReplicas is 3"},
		"not told how they do":    {map[string]string{"connected_slaves": "1"}, "1", 1, ""},
		"config is not told":      {two, "", 1, ""},
		"none for those to wait":  {map[string]string{}, "0", 1, "0 replicas keep up, and redis.waitReplicas is 1"},
		"lagging and to wait for": {lagging, "0", 1, "0 replicas keep up"},
	} {
		t.Run(name, func(t *testing.T) {
			d := judge(Single, row.info, map[string]string{"min-replicas-to-write": row.min}, row.waited)
			if d.Refusal == "" != (row.want == "") || !strings.Contains(d.Refusal, row.want) {
				t.Errorf("refusal %q, want one with %q", d.Refusal, row.want)
			}
			if got := strings.Join(d.Warnings, " "); !strings.Contains(got, row.want) {
				t.Errorf("warnings %q don't say so", got)
			}
		})
	}
}

func TestWeakestMasterCounts(t *testing.T) {
	always := Durability{AOF: true, Fsync: "always", Persistent: true}
	second := Durability{AOF: true, Fsync: "everysec", Persistent: true, Replicas: 2, Warnings: []string{"a"}}
	nothing := Durability{Replicas: 1, Warnings: []string{"a", "b"}}
	got := weakest([]Durability{always, nothing, second})
	if diff := cmp.Diff(nothing, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := weakest([]Durability{second, always}); got.Fsync != "everysec" {
		t.Errorf("weakest is %+v", got)
	}
}

func TestCheckVersion(t *testing.T) {
	for version, ok := range map[string]bool{"7.0.15": true, "6.2.0": true, "8.0.0-rc1": true, "": true,
		"unknown": true, "6.0.16": false, "5.0.7": false} {
		if err := checkVersion(version); (err == nil) != ok {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
