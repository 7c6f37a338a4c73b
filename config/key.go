package config

import (
	"cmp"
	"log/slog"
	"net/netip"
	"reflect"
	"regexp"
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
	index []int  // of the field in Config
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
	reflect.TypeFor[string]():          "text",
	reflect.TypeFor[Secret]():          "text",
	reflect.TypeFor[bool]():            "true or false",
	reflect.TypeFor[int]():             "whole number",
	reflect.TypeFor[float64]():         "number",
	reflect.TypeFor[time.Duration]():   "duration",
	reflect.TypeFor[[]time.Duration](): "list of durations",
	reflect.TypeFor[[]netip.Prefix]():  "list of networks",
	reflect.TypeFor[Size]():            "size",
	reflect.TypeFor[Memory]():          "size or share",
	reflect.TypeFor[Relay]():           "relay URL",
	reflect.TypeFor[Mailbox]():         "mailbox",
	reflect.TypeFor[slog.Level]():      "choice",
}

var capital = regexp.MustCompile("[A-Z]")

// envName returns the environment variable of a path: dots and inner capitals become underscores.
func envName(path string) string {
	return envPrefix + strings.ToUpper(capital.ReplaceAllString(strings.ReplaceAll(path, ".", "_"), "_$0"))
}
