package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print which rowfeed this is",
		Long:    "Prints rowfeed's version, the commit it was built from, and Go's version.",
		Example: "  rowfeed version",
		Args:    takes(0, 0, ""),
		RunE:    func(*cobra.Command, []string) error { return a.say("%s", versionText(debug.ReadBuildInfo())) },
	}
}

func versionText(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "rowfeed (built without module information)"
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "development build"
	}
	text := "rowfeed " + version
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			text += ", commit " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			text += " (modified)"
		}
	}
	return text + ", " + info.GoVersion
}
