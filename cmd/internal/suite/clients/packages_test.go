package clients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// licence checks that an archive has rowfeed's licence.
func licence(t *testing.T, path string) {
	t.Helper()
	want, err := os.ReadFile("../../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
		t.Errorf("%s is not rowfeed's licence: %v", path, err)
	}
}

// TestPythonArchivesCanBeInstalled (O8) builds the archives of the Python client. It installs each of them without a
// package index, and uses it.
func TestPythonArchivesCanBeInstalled(t *testing.T) {
	testdb.SQLite.Require(t)
	folder := client(t, "python")
	quiet := []string{"PYTHONWARNINGS=ignore", "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"PIP_ROOT_USER_ACTION=ignore"}
	run(t, folder, quiet, python(t), "-c",
		"from setuptools import build_meta as b; b.build_wheel('dist'); b.build_sdist('dist')")
	archives, err := filepath.Glob(filepath.Join(folder, "dist", "*"))
	if err != nil || len(archives) != 2 {
		t.Fatal(archives, err)
	}
	for _, archive := range archives {
		to := t.TempDir()
		run(t, t.TempDir(), quiet, python(t), "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps",
			"--no-compile", "--target", to, archive)
		out := run(t, t.TempDir(), append(quiet, "PYTHONPATH="+to), python(t), "-c", `
import os, rowfeed
print(os.path.dirname(rowfeed.__file__), os.listdir(os.path.dirname(rowfeed.__file__)))
try:
    rowfeed.Client("http://127.0.0.1:1", "kv").fetch()
except rowfeed.Unavailable as e:
    print(e.code)
`)
		if !strings.HasPrefix(out, filepath.Join(to, "rowfeed")) || !strings.Contains(out, "py.typed") ||
			!strings.HasSuffix(out, "unavailable\n") {
			t.Errorf("%s: %s", archive, out)
		}
		licences, err := filepath.Glob(filepath.Join(to, "rowfeed-*.dist-info", "LICENSE"))
		if err != nil || len(licences) != 1 {
			t.Fatal(archive, licences, err)
		}
		licence(t, licences[0])
	}
}

// TestTypeScriptArchiveCanBeInstalled (O9) packs the compiled TypeScript client, installs the archive offline in a new
// project, and uses it.
func TestTypeScriptArchiveCanBeInstalled(t *testing.T) {
	testdb.SQLite.Require(t)
	folder, project := typescript(t), t.TempDir()
	archive := strings.TrimSpace(run(t, folder, nil, "npm", "pack", "--ignore-scripts", "--silent",
		"--pack-destination", project))
	if err := os.WriteFile(filepath.Join(project, "package.json"), []byte(`{"private": true, "type": "module"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	run(t, project, nil, "npm", "install", "--offline", "--no-audit", "--no-fund", "--silent",
		"./"+archive[strings.LastIndex(archive, "\n")+1:])
	out := run(t, project, nil, "node", "--input-type=module", "-e", `
		import { Client } from "rowfeed";
		import { nodeFetch } from "rowfeed/node";
		console.log(await new Client("http://127.0.0.1:1", "kv", { fetch: nodeFetch({}) })
			.fetch().catch((e) => e.code));`)
	if !strings.HasSuffix(out, "unavailable\n") {
		t.Error(out)
	}
	installed := filepath.Join(project, "node_modules")
	licence(t, filepath.Join(installed, "rowfeed", "LICENSE"))
	for _, c := range []struct {
		folder string
		want   []string
	}{{installed, []string{"rowfeed"}},
		{filepath.Join(installed, "rowfeed"), []string{"LICENSE", "README.md", "dist", "package.json"}},
		{filepath.Join(installed, "rowfeed", "dist"), []string{"src"}}} {
		var got []string
		entries, err := os.ReadDir(c.folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				got = append(got, e.Name())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s holds %q, want %q", c.folder, got, c.want)
		}
	}
	for _, name := range []string{"index", "node"} {
		if _, err := os.Stat(filepath.Join(installed, "rowfeed", "dist", "src", name+".d.ts")); err != nil {
			t.Error(err)
		}
	}
}
