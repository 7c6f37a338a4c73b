package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Key describes one setting, as its field in Config does.
type Key struct {
	Path    string   // such as delivery.retry.base
	Env     string   // such as POSTROOM_DELIVERY_RETRY_BASE
	Kind    string   // what may be written: "duration", "size"…
	Default string   // as in the file; empty when there is none
	Empty   string   // what an empty value means; "" when the setting must have a value
	Doc     string   // what it means
	Min     string   // lowest value; "" when there is no limit
	Max     string   // highest value; "" when there is no limit
	Values  []string // the allowed words; nil if any are allowed
	Secret  bool     // its value, or the credentials in it, are never shown

	check string // name of a rule in format.go
	mask  string // the secret tag
	index []int  // index of the field in Config
}

// Keys lists every setting in the order of Config.
func Keys() []Key { return walk(nil, reflect.TypeFor[Config](), "", nil) }

func walk(keys []Key, t reflect.Type, prefix string, index []int) []Key {
	for i := range t.NumField() {
		f := t.Field(i)
		path := prefix + f.Tag.Get("key")
		at := append(append([]int{}, index...), i)
		if kind := kinds[f.Type]; kind != "" {
			keys = append(keys, newKey(f, path, kind, at))
		} else {
			keys = walk(keys, f.Type, path+".", at)
		}
	}
	return keys
}

func newKey(f reflect.StructField, path, kind string, at []int) Key {
	tag := f.Tag.Get
	k := Key{
		Path: path, Env: envName(path), Kind: cmp.Or(tag("check"), kind), Default: tag("default"),
		Empty: tag("empty"), Doc: tag("doc"), Min: tag("min"), Max: tag("max"), Secret: tag("secret") != "",
		check: tag("check"), mask: tag("secret"), index: at,
	}
	if words := tag("values"); words != "" {
		k.Values, k.Kind = strings.Split(words, ","), "choice"
	}
	return k
}

// kinds are the kinds of the settings by type. A field of another type is a group of settings.
var kinds = map[reflect.Type]string{
	reflect.TypeFor[string]():           "text",
	reflect.TypeFor[Secret]():           "text",
	reflect.TypeFor[bool]():             "true or false",
	reflect.TypeFor[int]():              "whole number",
	reflect.TypeFor[float64]():          "number",
	reflect.TypeFor[time.Duration]():    "duration",
	reflect.TypeFor[[]time.Duration]():  "list of durations",
	reflect.TypeFor[[]netip.Prefix]():   "list of networks",
	reflect.TypeFor[[]netip.AddrPort](): "list of name servers",
	reflect.TypeFor[Size]():             "size",
	reflect.TypeFor[Memory]():           "size or share",
	reflect.TypeFor[Relay]():            "relay URL",
	reflect.TypeFor[Mailbox]():          "mailbox",
	reflect.TypeFor[slog.Level]():       "choice",
}

var capital = regexp.MustCompile("[A-Z]")

// envName returns the environment variable of a path: dots and inner capitals become underscores.
func envName(path string) string {
	return envPrefix + strings.ToUpper(capital.ReplaceAllString(strings.ReplaceAll(path, ".", "_"), "_$0"))
}

const (
	envPrefix = "POSTROOM_"
	envConfig = "POSTROOM_CONFIG" // names the file; not a setting
	envFile   = "_FILE"           // appended to a variable: its value is in that file
)

// maxFile limits every file that is read, so that a wrong path (a device, a disk image) is an error and
// does not fill the memory.
const maxFile = 1 << 20

// injected matches the variables that Kubernetes sets for a service called postroom. They are not settings.
var injected = regexp.MustCompile(`^POSTROOM_(SERVICE_(HOST|PORT)|PORT)(_[A-Z0-9_]+)?$`)

// readEnv returns the POSTROOM_ variables. An empty one counts as not set, because ${NAME:-} produces empty
// variables.
func readEnv(environ []string) map[string]string {
	env := map[string]string{}
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok && value != "" && strings.HasPrefix(name, envPrefix) {
			env[name] = value
		}
	}
	return env
}

// fromEnv reads the settings of the environment.
func (l *loading) fromEnv(env map[string]string, others []string) {
	rest := maps.Clone(env)
	delete(rest, envConfig)
	for _, name := range others {
		delete(rest, name)
	}
	known := make([]string, 0, len(l.keys))
	for _, k := range l.keys {
		l.envKey(k, env)
		delete(rest, k.Env)
		delete(rest, k.Env+envFile)
		known = append(known, k.Env)
	}
	for _, name := range sortedKeys(rest) {
		if !injected.MatchString(name) {
			l.warnings = append(l.warnings, "environment variable "+name+" is not a setting"+didYouMean(name, known))
		}
	}
}

func (l *loading) envKey(k Key, env map[string]string) {
	text, plain := env[k.Env]
	path, filed := env[k.Env+envFile]
	switch {
	case plain && filed:
		l.problem(k.Path, k.Env+" and "+k.Env+envFile, "is set twice; keep one of the two variables")
	case plain:
		l.given[k.Path] = given{text, k.Env}
	case filed:
		source := k.Env + envFile + " " + path
		content, err := readSmall(path)
		if err != nil {
			l.problem(k.Path, source, "can't be read from its file: "+err.Error())
			return
		}
		if text = trimNewline(string(content)); text == "" { // an empty secret file must not lead to a new secret
			l.problem(k.Path, source, "names an empty file; write the value into it, or remove the variable")
			return
		}
		l.given[k.Path] = given{text, source}
	}
}

// trimNewline removes the one newline that editors and echo leave at the end of a file.
func trimNewline(s string) string {
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}

// readSmall reads a file of settings. The error does not contain the path, which the caller adds.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, cause(err)
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return content, nil
}

func cause(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
