package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testsmtp"
)

// testbed is everything that runs: Redis, Postroom's processes, the relays, the webhook receivers, and the
// lines between them.
type testbed struct {
	rig.Closing
	o         options
	dir       string
	ledger    *ledger
	redis     *observer
	servers   []*program // all that Redis consists of
	socket    string     // the only redis-server's
	cluster   *cluster   // instead of it; or nil
	relays    *relays
	apis      []*postroom
	workers   []*postroom
	receivers []*receiver
	hookLines []*testproxy.Proxy
	http      *http.Client
}

// postroom is one process of Postroom and its lines.
type postroom struct {
	*program
	redisLine *testproxy.Proxy // to the only redis-server; nil with a Cluster
	apiLine   *testproxy.Proxy // between clients and an API process
	smtpLine  *testproxy.Proxy // between a worker and its relay
	relay     *testsmtp.Server
	client    *api.Client
}

// open starts everything.
func (h *testbed) open(ctx context.Context) (err error) {
	h.http = &http.Client{
		Transport: &http.Transport{MaxConnsPerHost: 200, MaxIdleConnsPerHost: 50}, Timeout: 5 * time.Second,
	}
	h.OnClose(h.http.CloseIdleConnections)
	if h.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
		return err
	}
	logging.Disable() // Redis is unreachable at times on purpose
	openRedis := h.openRedis
	if h.o.cluster {
		openRedis = h.openCluster
	}
	if err := openRedis(ctx); err != nil {
		return err
	}
	for _, name := range h.names() {
		if err := h.add(name); err != nil {
			return err
		}
	}
	for _, p := range h.processes() {
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	if err := h.subscribe(ctx); err != nil {
		return err
	}
	if err := h.acquaint(ctx); err != nil {
		return err
	}
	return h.enlist(ctx)
}

// names returns the names of Postroom's processes.
func (h *testbed) names() []string {
	var out []string
	for n := range h.o.apis {
		out = append(out, fmt.Sprintf("%s-%d", roleAPI, n+1))
	}
	for n := range h.o.workers {
		out = append(out, fmt.Sprintf("%s-%d", roleWorker, n+1))
	}
	return out
}

// start runs a program until the testbed is closed.
func (h *testbed) start(p *program) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	p.want()
	running.Go(func() { p.run(ctx) })
	h.OnClose(func() { stop(); running.Wait() })
}

// line puts a faulty line in front of a server.
func (h *testbed) line(network, server string) (*testproxy.Proxy, error) {
	p, err := testproxy.Listen(network, server)
	if err == nil {
		h.OnClose(p.Close)
	}
	return p, err
}

// The roles of a process, with which its name begins.
const (
	roleAPI    = "api"
	roleWorker = "worker"
)

// add starts one process of Postroom, with lines of its own.
func (h *testbed) add(name string) error {
	p, err := &postroom{}, error(nil)
	role, _, _ := strings.Cut(name, "-")
	if h.cluster == nil {
		if p.redisLine, err = h.line("unix", h.socket); err != nil {
			return err
		}
	}
	if p.relay, err = h.relays.listen(name); err != nil {
		return err
	}
	h.OnClose(p.relay.Close)
	if p.smtpLine, err = h.line("tcp", p.relay.Addr()); err != nil {
		return err
	}
	// its target is known when the process is ready
	if p.apiLine, err = h.line("tcp", "127.0.0.1:1"); err != nil {
		return err
	}
	p.client = api.NewClient("http://"+p.apiLine.Addr(), rig.Token, h.http)
	set := h.settings(role, name, p)
	p.program, err = newProgram(h.dir, name, h.ledger, func() *exec.Cmd { return rig.Command(set) }, p.isReady)
	if err != nil {
		return err
	}
	if role == roleAPI {
		h.apis = append(h.apis, p)
	} else {
		h.workers = append(h.workers, p)
	}
	h.start(p.program)
	return nil
}

func (h *testbed) settings(role, name string, p *postroom) map[string]string {
	url, replicas := "", "0"
	if h.cluster == nil {
		url = "redis://" + p.redisLine.Addr()
	} else {
		url, replicas = h.cluster.url(name), "1"
	}
	set := map[string]string{
		"role": role, "redis.url": url, "redis.waitReplicas": replicas,
		"redis.partitions": fmt.Sprint(h.o.partitions), "data": filepath.Join(h.dir, name),
		"http.listen": "127.0.0.1:0", "token": rig.Token, "secret": rig.Secret,
		"serviceUrl": "https://chaos.example.com",
		"smtp":       "smtp://" + p.smtpLine.Addr(), "from": "chaos@example.com",
		"webhooks.allowPrivate": "true", "webhooks.attempts": "100", "webhooks.timeout": "3s",
		"delivery.lease": h.o.lease.String(), "delivery.timeout": "4s", "delivery.attempts": "12",
		"delivery.retry.base": "500ms", "delivery.retry.factor": "1.5", "delivery.retry.max": "5s",
		"workers.submit": "20", "workers.bulk": "10", "workers.notify": "20", "log.level": "info",
	}
	maps.Copy(set, digestSettings)
	return set
}

// isReady waits until the process prints its address.
func (p *postroom) isReady(_ context.Context, out *bufio.Reader) error {
	address, err := rig.Address(out)
	if err != nil {
		return err
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		p.apiLine.Lead(u.Host)
	}
	return nil
}

// subscribe makes the webhook endpoints.
func (h *testbed) subscribe(ctx context.Context) error {
	for n := range h.o.receivers {
		r := newReceiver(fmt.Sprintf("receiver-%d", n+1), h.o.seed, h.ledger)
		h.OnClose(r.close)
		line, err := h.line("tcp", r.server.Listener.Addr().String())
		if err != nil {
			return err
		}
		e, err := api.CreateEndpoint.Do(ctx, h.apis[0].client, api.EndpointRequest{
			URL: "http://" + line.Addr() + "/", Description: r.name})
		if err != nil {
			return err
		}
		r.id = e.ID
		if err := r.trust(e.Secret); err != nil {
			return err
		}
		h.receivers, h.hookLines = append(h.receivers, r), append(h.hookLines, line)
	}
	return nil
}

// processes returns all processes of Postroom.
func (h *testbed) processes() []*postroom { return slices.Concat(h.apis, h.workers) }

// heal ends every fault and waits until everything runs.
func (h *testbed) heal(ctx context.Context) error {
	h.relays.calm.Store(true)
	for _, r := range h.receivers {
		r.calm.Store(true)
	}
	for _, line := range h.hookLines {
		line.Up()
	}
	programs := slices.Clone(h.servers)
	for _, p := range h.processes() {
		programs = append(programs, p.program)
		for _, line := range []*testproxy.Proxy{p.redisLine, p.smtpLine, p.apiLine} {
			if line != nil {
				line.Up()
			}
		}
	}
	if h.cluster != nil {
		for _, n := range h.cluster.nodes {
			n.line.Up()
		}
	}
	var errs []error
	for _, p := range programs {
		p.thaw()
		p.want()
		errs = append(errs, p.await(ctx))
	}
	if h.cluster != nil {
		errs = append(errs, h.cluster.inStep(ctx))
	}
	return errors.Join(errs...)
}
