package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/config"
)

func TestValueFromFile(t *testing.T) {
	const url = "smtp://u:p@relay"
	rows := []struct{ name, content string }{
		{"no newline", url},
		{"one newline", url + "\n"},
		{"newline of Windows", url + "\r\n"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			file := write(t, "smtp", r.content)
			l := load(t, config.Sources{Env: []string{"POSTROOM_FROM=a@example.com",
				"POSTROOM_SMTP_FILE=" + file}})
			if l.SMTP.Pass.Reveal() != "p" {
				t.Errorf("relay %+v", l.SMTP)
			}
			if got, want := row(t, l, "smtp").Source, "POSTROOM_SMTP_FILE "+file; got != want {
				t.Errorf("source %q, want %q", got, want)
			}
		})
	}
}

func TestWrongEnvironment(t *testing.T) {
	empty := write(t, "empty", "\n")
	rows := []struct {
		name string
		env  []string
		want string
	}{
		{"no such file", []string{"POSTROOM_TOKEN_FILE=/nowhere/token"},
			"token: can't be read from its file: no such file or directory (POSTROOM_TOKEN_FILE /nowhere/token)"},
		{"empty file", []string{"POSTROOM_SECRET_FILE=" + empty},
			"secret: names an empty file; write the value into it, or remove the variable (POSTROOM_SECRET_FILE " +
				empty + ")"},
		{"both", []string{"POSTROOM_DATA=x", "POSTROOM_DATA_FILE=y"},
			"data: is set twice; keep one of the two variables (POSTROOM_DATA and POSTROOM_DATA_FILE)"},
		{"wrong value", []string{"POSTROOM_WORKERS_BULK=x"},
			`workers.bulk: "x" is not a whole number; write a whole number, from 1 to 10000 (POSTROOM_WORKERS_BULK)`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{r.want}, faults(t, config.Sources{Env: r.env})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnknownVariablesAreWarnedAbout(t *testing.T) {
	l := load(t, config.Sources{
		Env: []string{
			"PATH=/bin", "POSTROOM_DELIVERY_ATTEMPT=5", "POSTROOM_COLOUR=blue", "POSTROOM_URL=http://localhost:3000",
			"POSTROOM_CONFIG=" + os.DevNull,
			"POSTROOM_SERVICE_HOST=10.0.0.1", "POSTROOM_SERVICE_PORT_HTTP=80", "POSTROOM_PORT=tcp://10.0.0.1:80",
			"POSTROOM_PORT_80_TCP_ADDR=10.0.0.1",
		},
		OtherEnv: []string{"POSTROOM_URL"},
	})
	want := []string{
		"environment variable POSTROOM_COLOUR is not a setting",
		"environment variable POSTROOM_DELIVERY_ATTEMPT is not a setting; did you mean POSTROOM_DELIVERY_ATTEMPTS?",
	}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownFlag(t *testing.T) {
	got := faults(t, config.Sources{Flags: map[string]string{"delivery.retry.bse": "1s"}})
	want := []string{"delivery.retry.bse: is not a setting; did you mean delivery.retry.base? (flag)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownKeysKeepTheirValues: what stands under a misspelt name may well be a password.
func TestUnknownKeysKeepTheirValues(t *testing.T) {
	file := write(t, "config.yaml", "secrett: hidden\n")
	got := strings.Join(faults(t, config.Sources{File: file, Flags: map[string]string{"tokn": "hidden"}}), "\n")
	if strings.Contains(got, "hidden") {
		t.Errorf("value of an unknown key is shown:\n%s", got)
	}
	l := load(t, config.Sources{Env: []string{"POSTROOM_SECRETT=hidden"}})
	if strings.Contains(strings.Join(l.Warnings, ""), "hidden") {
		t.Errorf("value of an unknown variable is shown: %q", l.Warnings)
	}
}
