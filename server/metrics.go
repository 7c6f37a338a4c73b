package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/telemetry"
)

// metrics are the metrics of the server, and the handler of all metrics.
type metrics struct {
	requests *prometheus.HistogramVec
	inFlight prometheus.Gauge
	submits  *prometheus.CounterVec

	connections *prometheus.CounterVec
	wrongProofs *prometheus.CounterVec
	bodies      *prometheus.CounterVec
	archive     *prometheus.CounterVec

	routes map[string]bool // the closed set of values of the label route
	serve  echo.HandlerFunc
}

// outcomes of a submit, as the metric names them.
var submitOutcomes = []string{"accepted", "repeated", "skipped", "dry_run", "entry_refused",
	string(fault.Invalid), string(fault.Unauthorized), string(fault.Forbidden), string(fault.NotFound),
	string(fault.TooLarge), string(fault.Unprocessable), string(fault.Limited), string(fault.Unavailable),
	string(fault.Internal)}

func newMetrics(counted prometheus.Registerer, shown prometheus.Gatherer) *metrics {
	auto := telemetry.MetricsOf(counted)
	return &metrics{
		requests: auto.HistogramsBy("postroom_http_request_duration_seconds",
			"Time from a request's headers to the end of its answer.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}, "method", "route", "status"),
		inFlight: auto.Gauge("postroom_http_requests_in_flight", "Requests being answered."),
		submits: auto.Counters("postroom_submits_total", "Submit requests by outcome.", "outcome",
			submitOutcomes...),
		connections: auto.Counters("postroom_http_connections_total", "HTTP connections by result.",
			"result", "served", "evicted", "refused"),
		wrongProofs: auto.Counters("postroom_http_wrong_proofs_total",
			"Requests to public URLs whose token or signature is wrong, by whether the address had too many.",
			"result", "told", "limited"),
		bodies: auto.Counters("postroom_http_bodies_refused_total",
			"Request bodies that were not read to their end.", "reason", "slow", "memory"),
		archive: auto.Counters("postroom_public_archive_views_total",
			"Pages of the public archive that were asked for.", "page", "list", "mail", "feed", "missing"),
		routes: map[string]bool{},
		serve:  echo.WrapHandler(promhttp.HandlerFor(shown, promhttp.HandlerOpts{})),
	}
}

// know gives a route its own label value.
func (m *metrics) know(r route) { m.routes[r.method+" "+echoPath(r.path)] = true }

// observe counts an answer. All requests outside the table share one label.
func (m *metrics) observe(method, path string, status int, took time.Duration) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if !m.routes[method+" "+path] {
		method, path = "any", "other"
	}
	m.requests.WithLabelValues(method, path, statusClass(status)).Observe(took.Seconds())
}

// refused counts a request that failed, if it was a submit.
func (m *metrics) refused(path string, status int, kind fault.Kind) {
	if !strings.HasSuffix(path, "/submit") || !m.routes["POST "+path] {
		return
	}
	if kind == fault.Internal && status < 500 {
		kind = fault.Invalid // refused by HTTP: a wrong content type, a timeout of the body
	}
	m.submits.WithLabelValues(string(kind)).Inc()
}

func statusClass(status int) string { return strconv.Itoa(status/100) + "xx" }
