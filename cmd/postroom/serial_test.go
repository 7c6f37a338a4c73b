package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// serialName is the name under which the test program is a serial.
const serialName = "serial"

// serial is a process that runs one command line of postroom after the other, for scripts. With the race
// detector most commands take less time than the start of a process.
type serial struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
	end io.Closer
}

// line is a command line and all that its process would have.
type line struct {
	Args, Env []string
	Dir       string
	In        []byte
}

// printed is what a command wrote, and its exit code.
type printed struct {
	Out, Err []byte
	Code     int
}

// serials are those that run no command; there are no more of them than tests run at once.
var serials = make(chan *serial, 100)

func startSerial() (*serial, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: self, Args: []string{serialName}, Env: append(os.Environ(), "GORACE="+raceAtOnce),
		Stderr: os.Stderr}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &serial{cmd: cmd, in: json.NewEncoder(in), out: json.NewDecoder(out), end: in}, cmd.Start()
}

// endSerials ends them all.
func endSerials() {
	for {
		select {
		case s := <-serials:
			_ = s.end.Close()
			_ = s.cmd.Wait()
		default:
			return
		}
	}
}

// runSerially runs the command lines that it reads.
func runSerially(in io.Reader, out io.Writer) int {
	for lines, answers := json.NewDecoder(in), json.NewEncoder(out); ; {
		var l line
		if err := lines.Decode(&l); err != nil {
			if errors.Is(err, io.EOF) {
				return 0
			}
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := answers.Encode(l.run()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

// run runs a command line in this process, which becomes like one that was started for it.
func (l line) run() (p printed) {
	os.Clearenv()
	for _, entry := range l.Env {
		name, value, _ := strings.Cut(entry, "=")
		_ = os.Setenv(name, value)
	}
	var out, err bytes.Buffer
	if fault := os.Chdir(l.Dir); fault != nil {
		return printed{Err: []byte(fault.Error()), Code: -1}
	}
	code := run(context.Background(), l.Args, &console{in: bytes.NewReader(l.In), out: &out, err: &err,
		size: func() (int, int) { return 100, 30 }})
	return printed{Out: out.Bytes(), Err: err.Bytes(), Code: code}
}

// typeIn runs a command of postroom as exec would.
func typeIn(ts *testscript.TestScript, args []string) printed {
	// The only way to the script's variables and its standard input.
	ts.Check(ts.Exec("sh", "-c", `env -0 >"$TMPDIR/env" && cat >"$TMPDIR/in"`))
	env, err := os.ReadFile(filepath.Join(ts.Getenv("TMPDIR"), "env"))
	ts.Check(err)
	l := line{Args: args, Dir: ts.MkAbs("."),
		Env: strings.Split(strings.TrimSuffix(string(env), "\x00"), "\x00")}
	l.In, err = os.ReadFile(filepath.Join(ts.Getenv("TMPDIR"), "in"))
	ts.Check(err)
	var s *serial
	select {
	case s = <-serials:
	default:
		s, err = startSerial()
		ts.Check(err)
	}
	ts.Check(s.in.Encode(l))
	var p printed
	ts.Check(s.out.Decode(&p))
	serials <- s
	return p
}

// postroomScript runs a command of postroom in a process that has run others: postroom ARGUMENT…. It differs
// from exec postroom in nothing that scripts see.
func postroomScript(ts *testscript.TestScript, neg bool, args []string) {
	p := typeIn(ts, args)
	_, _ = ts.Stdout().Write(p.Out)
	_, _ = ts.Stderr().Write(p.Err)
	if failed := p.Code != 0; failed != neg {
		ts.Fatalf("the exit code is %d:\n%s%s", p.Code, p.Out, p.Err)
	}
}
