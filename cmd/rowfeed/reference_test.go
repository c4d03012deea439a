package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/docs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestEachListedCommandHasPage: each command that --help lists has a Markdown page, and no other command has one.
func TestEachListedCommandHasPage(t *testing.T) {
	s := newShell(t)
	s.ok("docs markdown made")
	want := map[string]bool{}
	for _, c := range visible(newRoot(&cli.App{})) {
		want[strings.ReplaceAll(c.CommandPath(), " ", "_")+".md"] = true
	}
	made := pages(t, "made")
	for name := range want {
		if made[name] == "" {
			t.Errorf("`rowfeed docs markdown` writes no page %s", name)
		}
	}
	for name := range made {
		if !want[name] {
			t.Errorf("`rowfeed docs markdown` writes the page %s, whose command --help does not list", name)
		}
	}
}

func pages(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(text)
	}
	return all
}

// TestManPagesHaveHelpText: the man page of each command has all lines of its help. No part of them is read as markup.
func TestManPagesHaveHelpText(t *testing.T) {
	s := newShell(t)
	s.ok("docs man made")
	made := pages(t, "made")
	for _, c := range visible(newRoot(&cli.App{})) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, ok := made[name]
		if !ok {
			t.Errorf("there is no %s", name)
			continue
		}
		plain := strings.NewReplacer(`\-`, "-", `\&`, "", `\(en`, "–", `\\`, `\`, `\[la]`, "<", `\[ra]`, ">", `\fI`, "",
			`\fR`, "", `\fB`, "", `\fP`, "").Replace(page)
		for line := range strings.Lines(c.Long) {
			if line = strings.TrimSpace(line); !strings.Contains(plain, line) {
				t.Errorf("%s lacks the line %q", name, line)
			}
		}
	}
	if !strings.Contains(made["rowfeed.1"], ".SH SYNOPSIS") {
		t.Errorf("rowfeed.1 is no man page:\n%.300s", made["rowfeed.1"])
	}
}

// visible returns the commands that --help lists.
func visible(root *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(commands(root), func(c *cobra.Command) bool { return c.Hidden })
}

// TestHelpIsComplete: each command has a description, an example, and a text for each flag.
func TestHelpIsComplete(t *testing.T) {
	for _, c := range visible(newRoot(&cli.App{})) {
		for what, text := range map[string]string{"short": c.Short, "long": c.Long, "example": c.Example} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no %s text", c.CommandPath(), what)
			}
		}
		if strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the short text ends with a dot", c.CommandPath())
		}
		for line := range strings.Lines(c.Long) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 88 {
				t.Errorf("%s: a line of %d characters is too long: %q", c.CommandPath(), n, line)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.TrimSpace(f.Usage) == "" {
				t.Errorf("%s --%s has no description", c.CommandPath(), f.Name)
			}
		})
	}
	s := newShell(t)
	if out := s.ok("--help"); !strings.Contains(out, "rowfeed feed add kv --table kv") {
		t.Errorf("--help: %s", out)
	}
}

// TestExamplesAreValid: each command accepts the arguments of its examples, and has an example of itself.
func TestExamplesAreValid(t *testing.T) {
	parsed := 0
	for _, c := range visible(newRoot(&cli.App{})) {
		own := false
		for _, words := range docs.Commands(c.Example, "rowfeed") {
			if err := documented(words, true); err != nil {
				t.Errorf("%s: rowfeed %s: %v", c.CommandPath(), strings.Join(words, " "), err)
			}
			line := "rowfeed " + strings.Join(words, " ")
			own = own || strings.HasPrefix(line+" ", c.CommandPath()+" ")
			parsed++
		}
		if !own {
			t.Errorf("%s: no example shows the command itself:\n%s", c.CommandPath(), c.Example)
		}
	}
	if parsed < 100 {
		t.Errorf("only %d lines were found", parsed)
	}
}

// TestHelpAndReferenceHaveSameText: --help and the Markdown page have the same texts.
func TestHelpAndReferenceHaveSameText(t *testing.T) {
	s := newShell(t)
	help := s.ok("consumer seek --help")
	s.ok("docs markdown made")
	page := pages(t, "made")["rowfeed_consumer_seek.md"]
	for _, c := range commands(newRoot(&cli.App{})) {
		if c.CommandPath() != "rowfeed consumer seek" {
			continue
		}
		for _, text := range []string{c.Long, c.Example} {
			if !strings.Contains(help, text) || !strings.Contains(page, text) {
				t.Errorf("%q is not in\n%s\nor not in\n%s", text, help, page)
			}
		}
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if _, usage := pflag.UnquoteUsage(f); !strings.Contains(page, "--"+f.Name+" ") ||
				!strings.Contains(page, usage) || !strings.Contains(help, usage) {
				t.Errorf("--%s (%s) is not in\n%s\nor not in\n%s", f.Name, usage, help, page)
			}
		})
	}
}
