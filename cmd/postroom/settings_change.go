package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// The commands of this file are about the settings of /v1/settings. Those at start are settings.go and
// configCmd.

func settingsVerbs() []verb {
	return []verb{
		{name: "get", help: "Show settings with their meaning (the default).", run: &settingsGetCmd{}},
		{name: "set", help: "Change settings immediately, for all processes.", run: &settingsSetCmd{},
			more: `webhookEvents takes several types with commas between them. webhooksCustomHeaders takes a line "Name: value" for
each header; read them from a file if they are secret: webhooksCustomHeaders=@headers.txt. All changes of one
call are made together, or none. They outlast restarts, and beat the configuration (postroom config).`},
	}
}

// settingNames are the names of all settings, for errors.
func settingNames() string {
	var names []string
	for _, s := range new(api.Settings).List() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

type settingsGetCmd struct {
	Names []string `arg:"" optional:"" name:"name" help:"Settings, for example deliveryAttempts. Defaults to all."`
}

func (g *settingsGetCmd) Run(s *session) error {
	known := new(api.Settings).List()
	for _, name := range g.Names {
		if !slices.ContainsFunc(known, func(k api.Setting) bool { return k.Name == name }) {
			return usage("there is no setting %s; there are %s", name, settingNames())
		}
	}
	got, err := api.GetSettings.Do(s, s.client)
	if err != nil {
		return err
	}
	var shown api.Settings
	rows := newGrid("setting", "value", "meaning")
	for _, set := range got.List() {
		if len(g.Names) > 0 && !slices.Contains(g.Names, set.Name) {
			continue
		}
		if err := shown.Put(set.Name, set.Text); err != nil {
			return err
		}
		rows.add(set.Name, cmp.Or(strings.ReplaceAll(set.Text, "\n", ", "), "–"), set.Doc)
	}
	return s.answer(shown, nil, func() { s.show(rows) })
}

type settingsSetCmd struct {
	Changes []string `arg:"" name:"name=value" help:"Setting and value, for example deliveryAttempts=5. @FILE reads the value from a file. An empty value clears it."`
}

func (c *settingsSetCmd) Run(s *session) error {
	var change api.Settings
	for _, text := range c.Changes {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return usage("%q is not name=value, such as deliveryAttempts=5", text)
		}
		content, err := s.read(value, false)
		if err != nil {
			return err
		}
		switch err := change.Put(name, string(content)); {
		case err == api.ErrNoSetting:
			return usage("there is no setting %s; there are %s", name, settingNames())
		case err != nil:
			return usage("%s %v", name, err)
		}
	}
	answer, err := api.UpdateSettings.Do(s, s.client, change)
	return s.answer(answer, err, func() { s.say("changed: %s", strings.Join(answer.Updated, ", ")) })
}
