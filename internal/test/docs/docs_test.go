package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/docs"
)

// TestLinesAreFoundInTheirOrder: the lines are in a text in their order, with anything between them.
func TestLinesAreFoundInTheirOrder(t *testing.T) {
	const text = "one\n  two 2 two\nthree\n"
	for _, want := range []string{"one\nthree", "two … two", "…\none\n…\nthree\n", ""} {
		if missing, all := docs.Contains(text, want); !all {
			t.Errorf("%q: %q", want, missing)
		}
	}
	for _, want := range []string{"three\none", "two", "one\none", "four", "(one)"} {
		if _, all := docs.Contains(text, want); all {
			t.Errorf("%q", want)
		}
	}
}

// TestCommandLinesOfProgramAreFound: the command lines of a program, anywhere in a script.
func TestCommandLinesOfProgramAreFound(t *testing.T) {
	script := "rowfeed init # rowfeed comment\nA=1 B=\"2 3\" rowfeed feed add kv --table 'a b' && rowfeed x | " +
		"sort\necho rowfeed no\n" +
		"x=$(rowfeed fetch kv --after \"$c\")\nrowfeed serve & sleep 1\nrowfeed tail kv \\\n  --after now > " +
		"rowfeed.out\n! rowfeed y; until rowfeed z; do :; done\n"
	var got []string
	for _, words := range docs.Commands(script, "rowfeed") {
		got = append(got, strings.Join(words, "|"))
	}
	want := []string{"init", "feed|add|kv|--table|a b", "x", "fetch|kv|--after|$c", "serve", "tail|kv|--after|now", "y",
		"z"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestDocumentIsSplitIntoBlocksAndProse: a document's blocks with their comments, and the prose without them.
func TestDocumentIsSplitIntoBlocksAndProse(t *testing.T) {
	folder := t.TempDir()
	text := "# A\n<!-- run: sqlite -->\n```sh\nrowfeed init\n```\nProse.\n<!-- fails: " +
		"no such feed -->\n\n```sh\nrowfeed fetch x\n```\n````\n```\n````\n<!-- a remark -->\n"
	if err := os.WriteFile(filepath.Join(folder, "a.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	documents, err := docs.Documents(folder)
	if err != nil || !slices.Equal(documents, []string{"a.md"}) {
		t.Fatal(documents, err)
	}
	blocks, prose, err := docs.Read(folder, "a.md")
	want := []docs.Block{
		{Document: "a.md", Line: 3, Language: "sh", Text: "rowfeed init\n", Verb: "run", Detail: "sqlite"},
		{Document: "a.md", Line: 9, Language: "sh", Text: "rowfeed fetch x\n", Verb: "fails", Detail: "no such feed"},
		{Document: "a.md", Line: 12, Text: "```\n"},
	}
	if err != nil || !slices.Equal(blocks, want) || !slices.Contains(prose, "Prose.") {
		t.Errorf("%+v, %q, %v", blocks, prose, err)
	}
}
