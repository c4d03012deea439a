package main

import (
	"cmp"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// The stamps are for builds without version control, as in a container, and for reproducible builds:
// go build -ldflags "-X main.stamp=v1.2.3". They override what Go records in the binary.
var (
	stamp       string // the version
	stampCommit string
	stampTime   string // of the commit, RFC 3339
)

func newVersion(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of rowfeed",
		Long: `Prints the version of rowfeed, the commit that it was built from, the commit's date, the
version of Go, and the platform.

With --json: {"version":"v1.2.3","commit":"…","time":"2026-01-31T12:00:00Z",
"modified":false,"go":"go1.26.8","platform":"linux/amd64"}; commit and time are "" if
rowfeed was built without version control.`,
		Example: "  rowfeed version\n  rowfeed version --json",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(*cobra.Command, []string) error { return printVersion(a) },
	}
	a.AddOutput(cmd, false)
	return cmd
}

func printVersion(a *cli.App) error {
	b := buildOf()
	if !a.JSON {
		return a.PrintLine("%s", b)
	}
	at := ""
	if !b.time.IsZero() {
		at = b.time.Format(time.RFC3339)
	}
	return a.PrintJSON(map[string]any{"version": b.version, "commit": b.commit, "time": at, "modified": b.modified,
		"go": b.goVersion, "platform": b.platform})
}

// build describes how a binary was built.
type build struct {
	version, commit     string
	time                time.Time // of the commit; zero if unknown
	modified            bool      // the work tree had uncommitted changes
	goVersion, platform string
}

// buildOf returns the build of this binary.
func buildOf() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return readBuild(info, stamp, stampCommit, stampTime)
}

func readBuild(info *debug.BuildInfo, version, commit, at string) build {
	b := build{version: cmp.Or(version, info.Main.Version), goVersion: info.GoVersion}
	if b.version == "" || b.version == "(devel)" {
		b.version = "development build"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b.commit, b.modified = cmp.Or(commit, settings["vcs.revision"]), settings["vcs.modified"] == "true"
	if moment, err := time.Parse(time.RFC3339, cmp.Or(at, settings["vcs.time"])); err == nil {
		b.time = moment.UTC()
	}
	if os := settings["GOOS"]; os != "" {
		b.platform = os + "/" + settings["GOARCH"]
	}
	return b
}

// String returns a line such as "rowfeed v1.2.3, commit 91486ca…, 2026-01-31, go1.26.8, linux/amd64".
func (b build) String() string {
	text := "rowfeed " + b.version
	if b.commit != "" {
		text += ", commit " + b.commit
		if b.modified {
			text += " (modified)"
		}
	}
	if !b.time.IsZero() {
		text += ", " + b.time.Format(time.DateOnly)
	}
	for _, more := range []string{b.goVersion, b.platform} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}
