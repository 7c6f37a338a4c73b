package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/bench/rig"
)

// shot is the result of many hits.
type shot struct {
	rig.Quantiles
	hits int
	in   time.Duration // all of it
}

func (s shot) rate() float64 { return float64(s.hits) / s.in.Seconds() }

func (s shot) String() string { return fmt.Sprintf("%s / %s", s.Quantiles, s.Most) }

// due is a hit that is due.
type due struct {
	number int
	at     time.Time
}

// shoot hits a server at a steady rate. A hit that finds all connections busy waits, and the wait counts as
// its time. It ends early, without an error, when ctx does.
func shoot(ctx context.Context, url string, connections, rate int, length time.Duration,
	path func(int) string) (shot, error) {
	line := make(chan due, 1<<20)
	group, ctx := errgroup.WithContext(ctx)
	took := make([][]time.Duration, connections)
	began := time.Now()
	group.Go(func() error {
		defer close(line)
		pace(ctx, rate, length, line)
		return nil
	})
	for i := range connections {
		group.Go(func() error {
			var err error
			took[i], err = hitAll(strings.TrimPrefix(url, "http://"), line, path)
			return err
		})
	}
	err := group.Wait()
	s, all := shot{in: time.Since(began)}, slices.Concat(took...)
	s.Quantiles, s.hits = rig.QuantilesOf(all), len(all)
	if err == nil && s.hits == 0 {
		err = fmt.Errorf("nothing was hit")
	}
	return s, err
}

// pace sends the hits when they are due. Timers are a millisecond apart at best: hits that are due together
// go together, as those of real mail do.
func pace(ctx context.Context, rate int, length time.Duration, line chan<- due) {
	began := time.Now()
	n := int(float64(rate) * length.Seconds())
	for i := 0; i < n && ctx.Err() == nil; {
		now := time.Now()
		for ; i < n && began.Add(time.Duration(i)*time.Second/time.Duration(rate)).Before(now); i++ {
			line <- due{i, now}
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// hitAll makes hits over one connection, as a browser asks.
func hitAll(address string, line <-chan due, path func(int) string) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	var took []time.Duration
	var request []byte
	for d := range line {
		request = append(request[:0], "GET "...)
		request = append(request, path(d.number)...)
		request = append(request,
			" HTTP/1.1\r\nHost: mail.example.com\r\nAccept: image/avif,image/webp,*/*\r\nAccept-Language: en\r\n"...)
		request = append(request,
			"User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Thunderbird/128.4."...)
		request = strconv.AppendInt(request, int64(d.number), 10) // each one is another visitor, and counts
		request = append(request, "\r\n\r\n"...)
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		if err := readAnswer(r); err != nil {
			return nil, err
		}
		took = append(took, time.Since(d.at))
	}
	return took, nil
}

// readAnswer reads a response, which must be a picture or a redirect.
func readAnswer(r *bufio.Reader) error {
	length, first := 0, true
	for {
		raw, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		text := strings.TrimRight(string(raw), "\r\n")
		switch {
		case first && !strings.HasPrefix(text, "HTTP/1.1 200") && !strings.HasPrefix(text, "HTTP/1.1 302"):
			return fmt.Errorf("answered %s", text)
		case text == "":
			_, err := io.CopyN(io.Discard, r, int64(length))
			return err
		}
		first = false
		if value, ok := strings.CutPrefix(text, "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				return err
			}
		}
	}
}
