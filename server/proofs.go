package server

import (
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/peers"
)

// wrongProofs counts wrong tokens and signatures of public URLs. A valid one is never refused, whatever else
// its address sent: many people may share the address.
type wrongProofs struct {
	*peers.Proofs
	count *prometheus.CounterVec
}

// tooMany counts a wrong proof. Beyond the limit it returns the short answer to send instead of a page, and
// the connection ends.
func (w *wrongProofs) tooMany(c echo.Context) error {
	limited, wait := w.Wrong(peers.Of(c.Request()).Addr, time.Now())
	if !limited {
		w.count.WithLabelValues("told").Inc()
		return nil
	}
	w.count.WithLabelValues("limited").Inc()
	c.Response().Header().Set(echo.HeaderConnection, "close")
	f := fault.New(fault.Limited, "TooManyWrongProofs", "Too many invalid links or signatures from your "+
		"address. Try again in a minute")
	f.RetryAfter = wait
	return f
}

// told returns err, or if it is about a wrong proof and there were too many, the error for that.
func (w *wrongProofs) told(c echo.Context, err error, wrong bool) error {
	if !wrong {
		return err
	}
	if limited := w.tooMany(c); limited != nil {
		return limited
	}
	return err
}
