package main

import (
	"runtime"
	"runtime/debug"
)

// release is the version, where the build gives it: -ldflags "-X main.release=1.2.3".
var release string

// version is what is known about the version of this program.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

type versionCmd struct {
	JSON bool `name:"json" help:"Print it as JSON, for programs."`
}

func (v *versionCmd) Run(con *console) error {
	if v.JSON {
		return con.printJSON(map[string]string{"version": version(), "go": runtime.Version(),
			"platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	con.say("postroom %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
