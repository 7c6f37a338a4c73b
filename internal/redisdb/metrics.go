package redisdb

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metricsTimeout keeps a scrape short when Redis hangs.
const metricsTimeout = 2 * time.Second

// Collector reports Redis's health to Prometheus, read at each scrape. In a Cluster, memory and evicted
// keys are sums over the masters, and the append-only file counts as on if it is on everywhere.
func (db *DB) Collector() prometheus.Collector {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("postroom_redis_"+name, help, nil, nil)
	}
	return &collector{
		db:    db,
		up:    describe("up", "1 when Redis answers, else 0."),
		ping:  describe("ping_seconds", "How long Redis took to answer a ping at this scrape."),
		used:  describe("used_memory_bytes", "Memory used by Redis."),
		limit: describe("max_memory_bytes", "The setting maxmemory of Redis. 0 means no limit."),
		aof:   describe("aof_enabled", "1 when Redis keeps an append-only file, else 0."),
		evicted: describe("evicted_keys_total",
			"Keys thrown away for want of memory since Redis started. Anything but 0 means lost mail."),
		clients:  describe("connected_clients", "Connections Redis has, from all processes."),
		conns:    describe("pool_connections", "Connections this process has."),
		idle:     describe("pool_idle_connections", "Connections this process has and does not use at the moment."),
		timeouts: describe("pool_timeouts_total", "Commands that waited for a free connection in vain."),
	}
}

// collector implements prometheus.Collector.
type collector struct {
	db                                                                  *DB
	up, ping, used, limit, aof, evicted, clients, conns, idle, timeouts *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.ping, c.used, c.limit, c.aof, c.evicted, c.clients, c.conns,
		c.idle, c.timeouts} {
		ch <- d
	}
}

// Collect queries Redis. While Redis is unavailable only the pool and up = 0 are reported.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	pool, blocking := c.db.client.PoolStats(), c.db.blocking.PoolStats()
	gauge(c.conns, float64(pool.TotalConns+blocking.TotalConns))
	gauge(c.idle, float64(pool.IdleConns+blocking.IdleConns))
	counter(c.timeouts, float64(pool.Timeouts+blocking.Timeouts))

	ctx, cancel := context.WithTimeout(context.Background(), metricsTimeout) // Prometheus passes no context
	defer cancel()
	took, err := c.db.Ping(ctx)
	if err != nil {
		gauge(c.up, 0)
		return
	}
	gauge(c.up, 1)
	gauge(c.ping, took.Seconds())
	infos, err := c.db.infos(ctx, "memory", "persistence", "stats", "clients")
	if err != nil {
		return
	}
	var used, limit, evicted, clients int64
	aof := 1.0
	for _, info := range infos {
		used += number(info, "used_memory")
		limit += number(info, "maxmemory")
		evicted += number(info, "evicted_keys")
		clients += number(info, "connected_clients")
		aof = min(aof, float64(number(info, "aof_enabled")))
	}
	gauge(c.used, float64(used))
	gauge(c.limit, float64(limit))
	gauge(c.aof, aof)
	gauge(c.clients, float64(clients))
	counter(c.evicted, float64(evicted))
}
