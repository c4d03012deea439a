package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// docsForm is a form in which the help of all commands can be written into a folder.
type docsForm struct {
	name, short, what string
	write             func(root *cobra.Command, folder string) error
}

var docsForms = []docsForm{
	{"man", "Write man pages, one for each command", "man pages (section 1), one for each command", writeMan},
	{"markdown", "Write the command reference", "the command reference, one Markdown page for each command",
		doc.GenMarkdownTree},
}

func newDocs(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("docs", "Write man pages and the command reference",
		`Writes the help of all commands as man pages, or as the command reference. Man pages,
reference and --help have the same text.`, `  rowfeed docs man /usr/local/share/man/man1
  rowfeed docs markdown reference`)
	for _, form := range docsForms {
		cmd.AddCommand(&cobra.Command{
			Use:   form.name + " DIR",
			Short: form.short,
			Long: "Writes " + form.what + ", into the folder DIR.\n" +
				"The command creates DIR if it does not exist, and deletes nothing there. Begin with an\n" +
				"empty folder, so that no pages of removed commands are left.",
			Example: "  rowfeed docs " + form.name + " " + form.name,
			Args:    cli.Args(1, 1, "the folder DIR"),
			RunE:    func(_ *cobra.Command, args []string) error { return writeDocs(a, form, args[0]) },
		})
	}
	return cmd
}

func writeDocs(a *cli.App, form docsForm, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := form.write(preformatted(newRoot(a)), folder); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(folder, "rowfeed*"))
	if err != nil {
		return err
	}
	return a.PrintLine("%s: %s", folder, cli.Plural(int64(len(pages)), "page"))
}

// preformatted marks the help texts of a tree as preformatted. They have lists and tables that are laid out for a
// terminal.
func preformatted(root *cobra.Command) *cobra.Command {
	for _, c := range commands(root) {
		c.DisableAutoGenTag = true
		c.Long = "```text\n" + c.Long + "\n```"
	}
	return root
}

// commands returns all commands of a tree, parents before their children.
func commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, child := range c.Commands() {
		all = append(all, commands(child)...)
	}
	return all
}

// writeMan writes man pages. Their date is the time of the commit, so that builds of the same commit have the same
// pages.
func writeMan(root *cobra.Command, folder string) error {
	built := buildOf()
	date := time.Unix(0, 0).UTC()
	if !built.time.IsZero() {
		date = built.time
	}
	return doc.GenManTree(root,
		&doc.GenManHeader{Section: "1", Date: &date, Source: "rowfeed " + built.version, Manual: "rowfeed"}, folder)
}
