package main

const configHelp = `The file overrides defaults, the environment overrides the file, and flags override the environment. Secrets are masked. If settings
are invalid, it reports all errors with exit code 2, so you can use it to check a configuration before you deploy it.`

type configCmd struct {
	settingsFlags
	JSON bool `name:"json" help:"Print JSON, for programs."`
}

func (c *configCmd) Run(con *console) error {
	settings, err := c.load(nil)
	if err != nil {
		return err
	}
	for _, w := range settings.Warnings {
		con.note("warning: %s", w)
	}
	if c.JSON {
		return settings.PrintJSON(con.out)
	}
	return settings.Print(con.out)
}
