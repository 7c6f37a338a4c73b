package main

import (
	"maps"
	"os"

	"github.com/postroom/postroom/config"
)

// settingsFlags choose the settings, for commands that need them.
type settingsFlags struct {
	Config string            `group:"settings" short:"c" placeholder:"FILE" help:"Configuration file. Defaults to $$POSTROOM_CONFIG, else to config.yaml if it exists."`
	Set    map[string]string `group:"settings" mapsep:"none" placeholder:"KEY=VALUE" help:"A setting, for example delivery.attempts=5. Repeat the flag for several. See: postroom config."`
}

// load reads the settings: file, environment, --set, and extra flags, which stand for settings of their own.
// Empty ones are left out.
func (f settingsFlags) load(extra map[string]string) (*config.Loaded, error) {
	maps.DeleteFunc(extra, func(_, value string) bool { return value == "" })
	flags := map[string]string{}
	maps.Copy(flags, f.Set)
	maps.Copy(flags, extra)
	return config.Load(config.Sources{File: f.Config, Env: os.Environ(), Flags: flags, OtherEnv: []string{
		envURL}})
}
