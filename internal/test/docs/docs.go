// Package docs reads the project's documents, so that tests can run their examples.
//
// A comment before a fenced block, which readers do not see, says what to do with the block:
//
//	<!-- run: sqlite, postgres15 -->  a session begins here, on each of these databases, new and empty.
//	                                  It has all blocks in "sh" and "sql" up to the next such comment.
//	<!-- fails: text -->              the block's last command fails, and prints the text
//	<!-- shows -->                    the block before printed these lines, in this order; … is anything,
//	                                  and terms, which are random, are 9k3f2c7adq; a SELECT that is a block
//	                                  by itself prints its rows
//	<!-- file: path -->               these lines are in that file of the repository, which tests compile;
//	                                  … is anything
//	<!-- run by: TestName -->         that test runs it
//	<!-- not run: reason -->          it is not run; its rowfeed commands are still checked
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a document.
type Block struct {
	Document string // the path below the repository
	Line     int    // of the fence, from 1
	Language string // sh, sql, go …; "" if the fence has none
	Text     string // with the last newline
	Verb     string // of the comment before it: run, fails, shows, file, run by, not run; "" without one
	Detail   string // the text after its colon
}

var comment = regexp.MustCompile(`^<!-- (run|fails|shows|file|run by|not run)(?:: (.*?))? -->$`)

// Documents returns the paths of all documents below a repository's root.
func Documents(root string) (paths []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() &&
			slices.Contains([]string{".git", ".engines", "node_modules", "testdata"}, d.Name()) {
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			below, _ := filepath.Rel(root, path)
			paths = append(paths, filepath.ToSlash(below))
		}
		return err
	})
	return paths, err
}

// Read splits a document into its blocks and the lines between them. A comment may also be between two lines of prose:
// then it belongs to the next block.
func Read(root, document string) (blocks []Block, prose []string, err error) {
	data, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		return nil, nil, err
	}
	var open *Block
	verb, detail, fence := "", "", ""
	for i, line := range strings.Split(string(data), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open != nil && trimmed == fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		case strings.HasPrefix(trimmed, "```"):
			language := strings.TrimLeft(trimmed, "`")
			fence = strings.TrimSuffix(trimmed, language)
			open = &Block{Document: document, Line: i + 1, Language: language, Verb: verb, Detail: detail}
			verb, detail = "", ""
		default:
			if m := comment.FindStringSubmatch(trimmed); m != nil {
				verb, detail = m[1], m[2]
				continue
			}
			prose = append(prose, line)
		}
	}
	return blocks, prose, nil
}

// Contains reports whether text has the lines of want, in their order. Otherwise it returns the first missing line.
// White space around a line is ignored, and … stands for anything.
func Contains(text, want string) (missing string, all bool) {
	lines := strings.Split(text, "\n")
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		if line == "" || line == "…" {
			continue
		}
		parts := strings.Split(line, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern := regexp.MustCompile(`^\s*` + strings.Join(parts, ".*") + `\s*$`)
		at := slices.IndexFunc(lines, pattern.MatchString)
		if at < 0 {
			return line, false
		}
		lines = lines[at+1:]
	}
	return "", true
}

// Commands returns the words of each simple command of a shell script that runs the program, without the program's
// name. It knows quotes, comments, variables set before a command, and the operators between commands.
func Commands(script, program string) (commands [][]string) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	var words []string
	word, inWord := "", false
	endWord := func() {
		if inWord {
			words = append(words, word)
		}
		word, inWord = "", false
	}
	endCommand := func() {
		endWord()
		for len(words) > 0 && assignment.MatchString(words[0]) ||
			len(words) > 0 && slices.Contains([]string{"!", "until", "while", "if", "then", "do", "time"}, words[0]) {
			words = words[1:]
		}
		if len(words) > 0 && words[0] == program {
			commands = append(commands, words[1:])
		}
		words = nil
	}
	quote := rune(0)
	comment := false
	for _, r := range script {
		switch {
		case comment && r != '\n':
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '#' && !inWord:
			comment = true
		case r == ' ' || r == '\t':
			endWord()
		case strings.ContainsRune("\n|&;()", r):
			comment = false
			endCommand()
		case r == '<' || r == '>':
			// The rest is a file, and not an argument.
			endWord()
			words = append(words, redirection)
		default:
			word, inWord = word+string(r), true
		}
	}
	endCommand()
	for i, words := range commands {
		if at := slices.Index(words, redirection); at >= 0 {
			commands[i] = words[:at]
		}
	}
	return commands
}

const redirection = "\x00"

var assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)
