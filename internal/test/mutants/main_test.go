package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestMutantsApply: every edit's old text stands in its file exactly once, and every
// mutant has a name of its own; so a change of the code cannot quietly disarm one.
func TestMutantsApply(t *testing.T) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.Name] {
			t.Errorf("%s: the name stands twice", m.Name)
		}
		names[m.Name] = true
		_, cleanup, err := m.overlay(strings.TrimSpace(string(root)))
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		cleanup()
	}
}
