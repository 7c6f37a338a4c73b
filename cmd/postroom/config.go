package main

const configHelp = `Defaults are beaten by the file, the file by the environment, the environment by flags. Secrets are masked. All faults are reported at
once, with exit code 2, so this also checks a configuration before it is rolled out.`

type configCmd struct {
	settingsFlags
	JSON bool `name:"json" help:"Print them as JSON, for programs."`
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
