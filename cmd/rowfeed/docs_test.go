package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/docs"
	"github.com/spf13/cobra"
)

// TestDocumentedCommandLinesAreValid: each command line of a document has a command and flags that exist. In a block of
// code its arguments are valid, too.
func TestDocumentedCommandLinesAreValid(t *testing.T) {
	documents, err := docs.Documents("../..")
	if err != nil {
		t.Fatal(err)
	}
	span := regexp.MustCompile("`(rowfeed [^`]+)`")
	traces := regexp.MustCompile(`(?m)^\| span \|.*\n(\|.*\n)*`) // the table has names of spans, not commands
	found := 0
	for _, document := range documents {
		blocks, prose, err := docs.Read("../..", document)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if b.Language != "sh" {
				continue
			}
			for _, words := range docs.Commands(b.Text, "rowfeed") {
				found++
				if err := documented(words, true); err != nil {
					t.Errorf("%s:%d: rowfeed %s: %v", document, b.Line, strings.Join(words, " "), err)
				}
			}
		}
		for _, m := range span.FindAllStringSubmatch(traces.ReplaceAllString(strings.Join(prose, "\n"), ""), -1) {
			for _, words := range docs.Commands(strings.ReplaceAll(m[1], "\n", " "), "rowfeed") {
				found++
				if err := documented(words, false); err != nil {
					t.Errorf("%s: `%s`: %v", document, m[1], err)
				}
			}
		}
	}
	if found < 80 {
		t.Errorf("%d command lines found", found)
	}
}

// documented returns an error unless the command line is valid. A line in prose is not whole: arguments may be missing
// or be placeholders.
func documented(words []string, whole bool) error {
	root := newRoot(&cli.App{Getenv: func(string) string { return "" }})
	root.InitDefaultHelpCmd()
	if !whole {
		// Placeholders, as NAME, KEY… and [--once], are no arguments.
		words = slices.DeleteFunc(words, func(w string) bool { return w == "…" || strings.HasPrefix(w, "[") })
	}
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") &&
		strings.ToLower(rest[0]) == rest[0] {
		return cli.UnknownCommand(cmd, rest[0])
	}
	if !whole {
		return flagsOf(cmd, rest)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// flagsOf checks only the flags.
func flagsOf(cmd *cobra.Command, words []string) error {
	for _, w := range words {
		name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
		if name != w && name != "" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			return cli.WrongUse(cmd, "unknown flag: --%s", name)
		}
	}
	return nil
}

// TestPrivilegesAreDocumentedForEachCommand: docs/OPERATIONS.md says for each command which login runs it, or that the
// command needs no database.
func TestPrivilegesAreDocumentedForEachCommand(t *testing.T) {
	_, prose, err := docs.Read("../..", "docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(strings.Join(prose, "\n"), "\n### Logins of the database\n")
	text, _, _ = strings.Cut(text, "\n#")
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Hidden || strings.Contains(text, "`"+path+"`") && !cmd.HasSubCommands() {
			return
		}
		if !cmd.HasSubCommands() {
			t.Errorf("%s is in no row of the logins in docs/OPERATIONS.md", path)
		}
		for _, sub := range cmd.Commands() {
			if !strings.Contains(text, "`"+path+"`") || path == "rowfeed" {
				look(sub)
			}
		}
	}
	look(newRoot(&cli.App{Getenv: func(string) string { return "" }}))
}

// TestReadmeNamesEveryCommand: the README's table of commands is complete.
func TestReadmeNamesEveryCommand(t *testing.T) {
	_, prose, err := docs.Read("../..", "README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(strings.Join(prose, "\n"), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, cmd := range newRoot(&cli.App{Getenv: func(string) string { return "" }}).Commands() {
		if !cmd.Hidden && !strings.Contains(table, "`"+cmd.Name()+"`") {
			t.Errorf("%s is not in the README's table", cmd.Name())
		}
	}
}
