package testapi

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Point is a point of an exchange.
type Point int

// The points of an exchange, in their order.
const (
	Nowhere Point = iota
	Accept        // the connection was made; nothing was read
	Headers       // the header was read
	Body          // half of the body was read
	Read          // the whole body was read
	Answer        // the header of the answer and half of its body were sent
)

// Say is an error that every provider words differently.
type Say string

// The errors of a [Fault]'s Say.
const (
	Throttled Say = "throttled" // too many requests
	Spent     Say = "spent"     // the quota of a day or a month, or the credits
	Down      Say = "down"      // a failure of the provider, in its own form
)

// Fault is what goes wrong with one request. Its fields can be combined. The zero value means nothing.
type Fault struct {
	// At is where the exchange stops. With Wait it continues when the channel is closed. Each value that is sent
	// to Wait at the point Answer lets one more byte out. Without Wait the connection is cut.
	At   Point
	Wait <-chan struct{}

	// Taken delivers the message before the exchange stops at Read, or although Status or Say replaces the
	// answer.
	Taken bool

	Say    Say               // the provider's own answer to this error
	Status int               // replaces the answer by Status, Header and Body
	Header map[string]string // is added to the answer
	Body   string
	Length int64 // repeats Body until the answer has this many bytes
	Gzip   bool  // compresses the answer

	Lie    func(answer any) any // changes the decoded JSON of the answer; see [Foreign] and the functions below
	Expire bool                 // the key is no longer valid from this request on
}

// Fail lets the next requests go wrong, one fault each, after those that wait already.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
	s.keepAlive()
}

// FailAlways lets all requests without their own fault go wrong. The zero value ends that.
func (s *Server) FailAlways(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = f
	s.keepAlive()
}

func (s *Server) next() Fault {
	f := s.always
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	s.keepAlive()
	return f
}

// keepAlive keeps connections unless the next request has to find a new one.
func (s *Server) keepAlive() {
	s.http.Config.SetKeepAlivesEnabled(s.awaits() != Accept)
}

// awaits returns the point at which the next request fails.
func (s *Server) awaits() Point {
	if len(s.faults) > 0 {
		return s.faults[0].At
	}
	return s.always.At
}

// pause waits at a point of the exchange or ends it there, if the fault says so.
func (s *Server) pause(r *http.Request, f Fault, at Point) {
	if f.At != at {
		return
	}
	if f.Wait == nil || !s.wait(r, f.Wait) {
		panic(http.ErrAbortHandler)
	}
}

// wait waits for a channel. It returns false if the client or the server leaves before.
func (s *Server) wait(r *http.Request, until <-chan struct{}) bool {
	select {
	case <-until:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

func (c *call) wait(d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.r.Context().Done():
		panic(http.ErrAbortHandler)
	case <-c.closed:
		panic(http.ErrAbortHandler)
	}
}

// gate is a listener that refuses connections, or accepts them late.
type gate struct {
	net.Listener
	s *Server
}

// late is a connection whose first request had its fault when it was accepted.
type late struct {
	net.Conn
	used bool
}

// Accept returns the next connection that is not refused.
func (g gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.s.mu.Lock()
		f := Fault{}
		if g.s.awaits() == Accept {
			f = g.s.next()
		}
		g.s.mu.Unlock()
		if f.At != Accept {
			return c, nil
		}
		if f.Wait != nil {
			select {
			case <-f.Wait:
			case <-g.s.closed:
			}
			return &late{Conn: c}, nil
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// send writes the answer, or the part of it that the fault lets through.
func (s *Server) send(w http.ResponseWriter, f Fault, a answer) {
	body := a.body.(string)
	if f.Gzip {
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		_, _ = io.WriteString(zip, body)
		_ = zip.Close()
		body = packed.String()
		a.header["Content-Encoding"] = "gzip"
	}
	if f.At == Answer {
		s.drip(w, f, a, body)
		return
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	if f.Length == 0 {
		_, _ = io.WriteString(w, body)
		return
	}
	chunk := strings.Repeat(cmp.Or(body, " "), 1+32<<10/(1+len(body)))
	for left, err := f.Length, error(nil); err == nil && left > 0; left -= int64(len(chunk)) {
		_, err = io.WriteString(w, chunk[:min(left, int64(len(chunk)))])
	}
}

// drip writes the first part of an answer, and the rest as the fault's channel says.
func (s *Server) drip(w http.ResponseWriter, f Fault, a answer, body string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	var head strings.Builder
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %d\r\n", a.status,
		http.StatusText(a.status), len(body))
	for name, value := range a.header {
		fmt.Fprintf(&head, "%s: %s\r\n", name, value)
	}
	whole := head.String() + "\r\n" + body
	now := len(whole) - (len(body)+1)/2
	if body == "" {
		now = len(whole) / 2
	}
	_, err = io.WriteString(conn, whole[:now])
	for ; f.Wait != nil && err == nil && now < len(whole); now++ {
		select {
		case <-f.Wait:
			_, err = conn.Write([]byte{whole[now]})
		case <-s.closed:
			return
		}
	}
}

// lie passes the JSON of an answer through a function.
func lie(raw []byte, change func(any) any) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var decoded any
	if err := dec.Decode(&decoded); err != nil {
		return nil, err
	}
	return json.Marshal(change(decoded))
}

// Foreign adds a recipient that the request did not have to the first list of the answer.
func Foreign(answer any) any {
	return inList(answer, func(l []any) []any {
		return append(l, each(l[len(l)-1], func(_ string, v any) any {
			if text, ok := v.(string); ok && strings.Contains(text, "@") {
				return "foreign@example.org"
			}
			return v
		}))
	})
}

// Missing removes the last element of the answer's first list.
func Missing(answer any) any { return inList(answer, func(l []any) []any { return l[:len(l)-1] }) }

// Twice repeats the first element of the answer's first list.
func Twice(answer any) any { return inList(answer, func(l []any) []any { return append(l, l[0]) }) }

// WrongIndex raises all indexes of the answer by 1,000.
func WrongIndex(answer any) any {
	return each(answer, func(name string, v any) any {
		if n, ok := v.(json.Number); ok && strings.EqualFold(name, "index") {
			i, _ := strconv.Atoi(n.String())
			return i + 1000
		}
		return v
	})
}

// WrongType replaces every text of the answer by a number, and every number by a text.
func WrongType(answer any) any {
	return each(answer, func(_ string, v any) any {
		switch v := v.(type) {
		case string:
			return len(v)
		case json.Number:
			return v.String()
		}
		return v
	})
}

// Null replaces the answer by null.
func Null(any) any { return nil }

// LargeID replaces every id of the answer by 2^53+1, a number that a float64 can't hold.
func LargeID(answer any) any {
	return each(answer, func(name string, v any) any {
		switch strings.ToLower(strings.Trim(name, "_")) {
		case "id", "messageid":
			return json.Number("9007199254740993")
		}
		return v
	})
}

// inList changes the first list of an answer that is not empty.
func inList(answer any, change func([]any) []any) any {
	switch v := answer.(type) {
	case []any:
		if len(v) > 0 {
			return change(v)
		}
	case object:
		for _, name := range []string{"data", "errors", "results", "Messages", "To", "messageIds",
			"BulkEmailEntryResults"} {
			if v[name] != nil {
				v = maps.Clone(v)
				v[name] = inList(v[name], change)
				return v
			}
		}
	}
	return answer
}

// each returns a copy of an answer in which a function has changed every value except lists and objects.
func each(answer any, change func(name string, v any) any) any {
	var walk func(string, any) any
	walk = func(name string, v any) any {
		switch v := v.(type) {
		case []any:
			list := make([]any, len(v))
			for i := range v {
				list[i] = walk(name, v[i])
			}
			return list
		case object:
			object := object{}
			for k := range v {
				object[k] = walk(k, v[k])
			}
			return object
		}
		return change(name, v)
	}
	return walk("", answer)
}
