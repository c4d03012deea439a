package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
)

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licencesOf are the licences of a binary's modules and of Go itself, whose texts most of
// them ask to be handed on. A module without one is refused.
func licencesOf(info *debug.BuildInfo) ([]byte, error) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "rowfeed is made of these modules, each under its own licence.\n")
	write := func(name, folder string) error {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		found := false
		for _, entry := range entries {
			if entry.IsDir() || !licenceFile.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
				continue
			}
			data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				return err
			}
			found = true
			fmt.Fprintf(&text, "\n==== %s: %s\n\n%s\n", name, entry.Name(), bytes.TrimSpace(data))
		}
		if !found {
			return fmt.Errorf("module %s has no licence in %s", name, folder)
		}
		return nil
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	if err := write("Go "+info.GoVersion, string(bytes.TrimSpace(goroot))); err != nil {
		return nil, err
	}
	folders, err := moduleFolders(info)
	if err != nil {
		return nil, err
	}
	for _, m := range modulesOf(info) {
		if err := write(m.Path+" "+m.Version, folders[m.Path]); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// moduleFolders are where the sources of a binary's modules are, by path.
func moduleFolders(info *debug.BuildInfo) (map[string]string, error) {
	args := []string{"list", "-m", "-json=Path,Version,Dir"}
	versions := map[string]string{}
	for _, m := range modulesOf(info) {
		args, versions[m.Path] = append(args, m.Path), m.Version
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	folders := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		if m.Version != versions[m.Path] {
			return nil, fmt.Errorf("the binary has %s %s, this tree %s: build it of this tree", m.Path, versions[m.Path], m.Version)
		}
		folders[m.Path] = m.Dir
	}
	return folders, nil
}
