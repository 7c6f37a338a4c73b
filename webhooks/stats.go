package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// mostHours is how far back an endpoint's numbers reach: 30 days.
const mostHours = 720

// Stats returns the numbers of the requests to an endpoint for some hours back from now, including the
// current one. Zero means 24. Each request counts in the hour in which it ended. Tests are not counted.
func (w *Webhooks) Stats(ctx context.Context, endpoint string, hours int) (api.EndpointStats, error) {
	hours = cmp.Or(hours, 24)
	if hours < 1 || hours > mostHours {
		return api.EndpointStats{}, fault.InvalidField("hours", "must be 1 to %d", mostHours)
	}
	if _, err := w.exists(ctx, endpoint); err != nil {
		return api.EndpointStats{}, err
	}
	last := w.now().UTC().Truncate(time.Hour)
	first := last.Add(-time.Duration(hours-1) * time.Hour)
	days, err := w.store.days(ctx, endpoint, first, last)
	if err != nil {
		return api.EndpointStats{}, redisdb.Away(err)
	}
	stats := api.EndpointStats{Endpoint: endpoint, From: first}
	var sum, took int
	for at := first; !at.After(last); at = at.Add(time.Hour) {
		hour, ms := hourOf(days[at.Format(time.DateOnly)], at.Hour())
		if hour.Requests == 0 {
			continue
		}
		stats.Hours = append(stats.Hours, api.EndpointHour{Hour: at, EndpointCounts: hour})
		stats.Delivered += hour.Delivered
		stats.Retried += hour.Retried
		stats.Failed += hour.Failed
		stats.Slowest = max(stats.Slowest, hour.Slowest)
		sum, took = sum+hour.Requests, took+ms
	}
	stats.Requests = sum
	complete(&stats.EndpointCounts, took)
	return stats, nil
}

// hourOf returns the numbers of an hour, and the duration of all its requests in milliseconds.
func hourOf(day map[string]string, hour int) (c api.EndpointCounts, ms int) {
	read := func(what string) int { return number(day[strconv.Itoa(hour)+":"+what]) }
	c = api.EndpointCounts{Delivered: read(statusDelivered), Retried: read("retried"),
		Failed:  read(statusFailed),
		Slowest: read("slowest")}
	c.Requests = c.Delivered + c.Retried + c.Failed
	ms = read("ms")
	complete(&c, ms)
	return c, ms
}

// complete fills in the share and the mean.
func complete(c *api.EndpointCounts, ms int) {
	if c.Requests > 0 {
		c.SuccessRate = float64(c.Delivered) / float64(c.Requests)
		c.Latency = ms / c.Requests
	}
}

// days reads the counters of an endpoint's days, by their dates.
func (s store) days(ctx context.Context, endpoint string, first, last time.Time) (
	map[string]map[string]string, error) {
	pipe := s.client.Pipeline()
	cmds := map[string]*redis.MapStringStringCmd{}
	for day := first.Truncate(24 * time.Hour); !day.After(last); day = day.AddDate(0, 0, 1) {
		cmds[day.Format(time.DateOnly)] = pipe.HGetAll(ctx, hoursKey(endpoint, day))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read the numbers of webhook endpoint %s: %w", endpoint, err)
	}
	days := make(map[string]map[string]string, len(cmds))
	for date, cmd := range cmds {
		days[date] = cmd.Val()
	}
	return days, nil
}
