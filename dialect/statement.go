package dialect

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// Statements are the SQL statements of one file, by name. A package that runs statements embeds such a file. Each
// statement begins with a line "-- name: x". The comment lines under it give its reason. The rest is the statement, a
// [template.Template] with
//
//	{{table "leases"}}  the quoted name of one of rowfeed's tables
//	{{now}}             [Spelling].Now
//	{{limit ":count"}}  the end of a statement with ORDER BY that answers at most so many rows
//	:owner              an argument, see [Args]
//
// A statement is the same for every database but for these. What only one database has is in that database's package.
type Statements struct{ templates *template.Template }

// Args are the values of a statement's arguments, by name.
type Args map[string]any

// Statement is a statement for one database and its tables.
type Statement struct {
	texts []string // between the arguments, and around them
	args  []string // names
}

// Limiter is implemented by databases that do not have LIMIT.
type Limiter interface {
	// Limit ends a statement with ORDER BY that answers at most so many rows, a number or a parameter.
	Limit(rows string) string
}

// NewStatements parses a file of statements. It panics if the file is malformed, as regexp.MustCompile does.
func NewStatements(file string) *Statements {
	all := &Statements{templates: template.New("").Option("missingkey=error").Funcs(functions(nil, Names{}))}
	for i, part := range strings.Split("\n"+file, "\n-- name: ") {
		if i == 0 {
			continue // what the file says about itself
		}
		lines := strings.Split(part, "\n")
		body := slices.IndexFunc(lines[1:], func(line string) bool { return !strings.HasPrefix(line, "--") })
		if body < 0 || all.templates.Lookup(lines[0]) != nil {
			panic(fmt.Sprintf("statement %q is empty or there twice", lines[0]))
		}
		template.Must(all.templates.New(lines[0]).Parse(strings.TrimSpace(strings.Join(lines[1+body:], "\n"))))
	}
	return all
}

func functions(s Spelling, n Names) template.FuncMap {
	return template.FuncMap{
		"table": func(base string) string { return Qualified(s, n.Table(base)) },
		"now":   func() string { return s.Now() },
		"limit": func(rows string) string {
			if l, ok := s.(Limiter); ok {
				return l.Limit(rows)
			}
			return "LIMIT " + rows
		},
	}
}

// Names returns the names of all statements, sorted.
func (all *Statements) Names() (names []string) {
	for _, t := range all.templates.Templates() {
		names = append(names, t.Name())
	}
	slices.Sort(names)
	return names
}

// Render returns a statement for a database and the names of rowfeed's tables in it.
func (all *Statements) Render(s Spelling, n Names, name string) (Statement, error) {
	t, err := all.templates.Clone()
	if err != nil {
		return Statement{}, err
	}
	var text strings.Builder
	if err := t.Funcs(functions(s, n)).ExecuteTemplate(&text, name, nil); err != nil {
		return Statement{}, err
	}
	return cutAtArgs(text.String()), nil
}

// cutAtArgs finds the arguments outside of literals and quoted names.
func cutAtArgs(text string) (st Statement) {
	from := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"' || c == '`':
			if end := strings.IndexByte(text[i+1:], c); end >= 0 {
				i += end + 1
			}
		case strings.HasPrefix(text[i:], "::"): // a cast
			i++
		case c == ':' && i+1 < len(text) && isName(text[i+1]):
			end := i + 1
			for end < len(text) && isName(text[end]) {
				end++
			}
			st.texts, st.args = append(st.texts, text[from:i]), append(st.args, text[i+1:end])
			from, i = end, end-1
		}
	}
	st.texts = append(st.texts, text[from:])
	return st
}

func isName(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' }

// Args returns the names of the statement's arguments, sorted.
func (st Statement) Args() []string {
	names := slices.Clone(st.args)
	slices.Sort(names)
	return slices.Compact(names)
}

// String returns the statement with the names of its arguments: :owner.
func (st Statement) String() string {
	var text strings.Builder
	for i, name := range st.args {
		text.WriteString(st.texts[i] + ":" + name)
	}
	return text.String() + st.texts[len(st.args)]
}

// Fill adds a statement's arguments to the builder, and returns its text. It panics if an argument has no value or a
// value no argument: the caller names both in its code.
func (b *Builder) Fill(st Statement, args Args) string {
	if names := st.Args(); len(names) != len(args) {
		panic(fmt.Sprintf("the statement %q has the arguments %q, and got %v", st, names, args))
	}
	var text strings.Builder
	for i, name := range st.args {
		v, ok := args[name]
		if !ok {
			panic(fmt.Sprintf("the statement %q has no value for :%s", st, name))
		}
		text.WriteString(st.texts[i] + b.Arg(v))
	}
	text.WriteString(st.texts[len(st.args)])
	return text.String()
}
