// Command light measures an idle Postroom: the size of the program, the time from its start until GET /ready
// answers 200, and the memory and CPU time of its process. Nothing is configured, so Postroom starts a
// redis-server of its own. docs/performance.md has the results.
//
//	make build && go run ./bench/light
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

const (
	wantReady  = 300 * time.Millisecond
	wantMemory = 60 << 20
	starts     = 5                // the median counts
	settle     = 15 * time.Second // until the memory is read: the memory of the start is returned by then
	idle       = 10 * time.Second // over which CPU time is measured
)

func main() {
	var program string
	flag.StringVar(&program, "program", "bin/postroom", "the program to measure; make build makes it")
	rig.Main("light", func(ctx context.Context) error { return run(ctx, program) })
}

func run(ctx context.Context, program string) error {
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	rig.Title("An idle Postroom with a redis-server of its own")
	rig.Tell("the program", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6))
	var all []time.Duration
	for range starts {
		took, err := once(ctx, program, nil)
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	slices.Sort(all)
	median := all[starts/2]
	rig.Row(fmt.Sprintf("from the start to /ready, median of %d", starts),
		fmt.Sprintf("%d ms", median.Milliseconds()), "under 300 ms", median < wantReady)
	_, err = once(ctx, program, func(p *rig.Process) {
		// An idle process is measured: there is no condition to wait for.
		time.Sleep(settle)
		before := p.CPU()
		time.Sleep(idle)
		now, _ := p.Resident()
		rig.Row("memory of the process, the pages of its program included",
			fmt.Sprintf("%.0f MB", float64(now)/(1<<20)), "under 60 MB", now < wantMemory)
		rig.Tell("CPU time in a second",
			fmt.Sprintf("%.0f ms", float64((p.CPU()-before).Milliseconds())/idle.Seconds()))
	})
	return err
}

// once starts the program in an empty directory, waits until it is ready, looks at it, and stops it.
func once(ctx context.Context, program string, look func(*rig.Process)) (took time.Duration, err error) {
	var r rig.Rig
	defer r.Close()
	if err := r.MakeDir("", "light-"); err != nil {
		return 0, err
	}
	address, err := rig.FreeAddress()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(program, "serve") //nolint:gosec // the program to measure
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "POSTROOM_HTTP_LISTEN=" + address,
		"POSTROOM_DATA=" + filepath.Join(r.Dir, "data")}
	begun := time.Now()
	p, _, err := rig.Start(cmd, filepath.Join(r.Dir, "log"))
	if err != nil {
		return 0, err
	}
	r.OnClose(p.Stop)
	err = rig.Until(ctx, time.Minute, time.Millisecond, func() (bool, error) {
		answer, err := http.Get("http://" + address + "/ready") //nolint:noctx // it ends by itself
		if err != nil {
			return false, nil // it does not listen yet
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	took = time.Since(begun)
	if err == nil && look != nil {
		look(p)
	}
	return took, err
}
