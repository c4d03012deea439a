package main

import (
	"runtime/debug"
	"testing"
)

// TestVersionDescribesBuild: the version comes from version control, else from the stamp of the build.
func TestVersionDescribesBuild(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}, {Key: "vcs.revision", Value: "91486ca"},
			{Key: "vcs.time", Value: "2026-01-31T12:00:00Z"}, {Key: "vcs.modified", Value: "true"}}}
	bare := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}}
	for _, c := range []struct {
		got  build
		want string
	}{
		{readBuild(info, "", "", ""), "rowfeed v1.2.3, commit 91486ca (modified), 2026-01-31, go1.26.8, linux/arm64"},
		{readBuild(bare, "v1.2.4", "", ""), "rowfeed v1.2.4, go1.26.8"},
		{readBuild(bare, "", "", ""), "rowfeed development build, go1.26.8"},
		{readBuild(bare, "v1.2.4", "91486ca", "2026-01-31T23:00:00-02:00"),
			"rowfeed v1.2.4, commit 91486ca, 2026-02-01, go1.26.8"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	s := newShell(t)
	if line := s.ok("version"); line != s.ok("--version") || line != buildOf().String()+"\n" {
		t.Errorf("version prints %q, --version %q", line, s.ok("--version"))
	}
}
