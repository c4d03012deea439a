package dialect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// Statements are the SQL statements of one file, by name. A package that runs statements embeds such a file. Each
// statement begins with a line "-- name: x". The comment lines under it give its reason; the first paragraph of them,
// up to a line "--", is what a printed script says of it. The rest is the statement, a [template.Template] with
//
//	{{table "leases"}}  the quoted name of one of rowfeed's tables
//	{{own_index "x"}}   the quoted name of an index of one of these tables
//	{{now}}             the database's clock: [Syntax].Now
//	{{limit ":count"}}  the end of a statement with ORDER BY that returns at most :count rows
//	{{skip ":count"}}   the end of a statement with ORDER BY that skips :count rows and returns the next one
//	{{at_most "100"}}   the end of a statement without ORDER BY that returns at most 100 rows
//	{{count}}           what counts the rows of a large table: [Syntax].Count
//	{{uncut ":all"}}    the end of a query whose rows are inserted where a default draws their numbers. The limit cuts
//	                    nothing off; empty with [Syntax].DrawsUncut
//	{{quote "a"}}       a quoted name
//	{{literal "a"}}     a literal
//	{{insert_new "leases" "name, epoch" ":name, 0" "name"}}
//	                    an INSERT of columns and values, and the columns of the key: see [Syntax].InsertNew
//	:owner              an argument, see [Args]
//
// and, in a statement about a feed, with the words of [Feed.words].
//
// A statement that is the same for every database is in the file of the package that runs it. A statement that takes
// locks, depends on a plan, or makes anything is in the folder of its database.
type Statements struct {
	templates *template.Template
	notes     map[string]string
	order     []string // of the names in the file
}

// Args are the values of a statement's arguments, by name. A value of type [SQL] or [Built] is text of the statement.
// All others are parameters.
type Args map[string]any

// SQL is text of a statement that depends on the call: a number that the planner must know, or a list of columns.
type SQL string

// Built is text of a statement that is built in its place, with parameters of its own.
type Built func(b *Builder) string

// Statement is a statement for one database and its tables.
type Statement struct {
	Note  string   // the reason, as a printed script shows it
	texts []string // between the arguments, and around them
	args  []string // names
	names []string // the same, sorted and each once
}

// NewStatements parses a file of statements. It panics if the file is malformed, as regexp.MustCompile does.
func NewStatements(file string) *Statements {
	all := &Statements{notes: map[string]string{},
		templates: template.New("").Funcs(functions(nil, Names{})).Funcs((*Feed)(nil).words(nil))}
	for i, part := range strings.Split("\n"+file, "\n-- name: ") {
		if i == 0 {
			continue // what the file says about itself
		}
		lines := strings.Split(part, "\n")
		body := slices.IndexFunc(lines[1:], func(line string) bool { return !strings.HasPrefix(line, "--") })
		if body < 0 || strings.Contains(lines[0], " ") || all.templates.Lookup(lines[0]) != nil {
			panic(fmt.Sprintf("statement %q is empty or there twice, or its name has a space", lines[0]))
		}
		text := strings.TrimSpace(strings.Join(lines[1+body:], "\n"))
		template.Must(all.templates.New(lines[0]).Parse(text))
		var note []string
		for _, line := range lines[1 : 1+body] {
			if line == "--" {
				break
			}
			note = append(note, strings.TrimPrefix(line, "-- "))
		}
		all.order = append(all.order, lines[0])
		all.notes[lines[0]] = strings.Join(note, " ")
	}
	return all
}

// Names returns the names of all statements, sorted.
func (all *Statements) Names() (names []string) {
	for _, t := range all.templates.Templates() {
		names = append(names, t.Name())
	}
	slices.Sort(names)
	return names
}

// Has tells whether there is a statement of this name.
func (all *Statements) Has(name string) bool { return all.templates.Lookup(name) != nil }

// Render returns a statement for a database and the names of rowfeed's tables in it.
func (all *Statements) Render(s *Syntax, n Names, name string) (Statement, error) {
	return all.render(functions(s, n), name, nil)
}

// RenderFor returns a statement about a feed. The statement depends on the feed's layout only.
func (all *Statements) RenderFor(s *Syntax, f *Feed, name string) (Statement, error) {
	words := functions(s, f.Names)
	for word, of := range f.words(s) {
		words[word] = of
	}
	return all.render(words, name, f)
}

func (all *Statements) render(words template.FuncMap, name string, dot any) (Statement, error) {
	t, err := all.templates.Clone()
	if err != nil {
		return Statement{}, err
	}
	var text strings.Builder
	if err := t.Funcs(words).ExecuteTemplate(&text, name, dot); err != nil {
		return Statement{}, err
	}
	st := cutAtArgs(text.String())
	st.Note = all.notes[name]
	return st, nil
}

// For is RenderFor of a statement that the caller knows to be there. It panics if there is none of this name. A feed
// that was kept (see [Feed.Keep]) remembers the statement.
func (all *Statements) For(s *Syntax, f *Feed, name string) Statement {
	type key struct {
		all  *Statements
		name string
	}
	kept := f.kept != nil && f.kept.of == f
	if kept {
		if st, ok := f.kept.rendered.Load(key{all, name}); ok {
			return st.(Statement)
		}
	}
	st, err := all.RenderFor(s, f, name)
	if err != nil {
		panic(err)
	}
	if kept {
		f.kept.rendered.Store(key{all, name}, st)
	}
	return st
}

// Step returns a statement about a feed as a step of a script.
func (all *Statements) Step(s *Syntax, f *Feed, name string, args Args) Step {
	st := all.For(s, f, name)
	return Step{Note: st.Note, SQL: NewScript(s).Fill(st, args)}
}

// keep has the statements of a feed that does not change any more.
type keep struct {
	of       *Feed // a copy of the feed has the same pointer, but may be changed
	rendered sync.Map
}

// Keep makes f cache its rendered statements, and returns f. All of them must be for one database. Do not change f
// afterwards: change a copy, which does not use the cache.
func (f *Feed) Keep() *Feed {
	f.kept = &keep{of: f}
	return f
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
		case c == '[' && beginsName(text, i):
			i += nameLength(text[i:]) - 1
		case strings.HasPrefix(text[i:], "::"), strings.HasPrefix(text[i:], ":="): // a cast, an assignment
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
	st.texts, st.names = append(st.texts, text[from:]), slices.Clone(st.args)
	slices.Sort(st.names)
	st.names = slices.Compact(st.names)
	return st
}

func isName(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' }

// Args returns the names of the statement's arguments, sorted.
func (st Statement) Args() []string { return st.names }

// Has tells whether the statement has an argument of this name.
func (st Statement) Has(arg string) bool { return slices.Contains(st.names, arg) }

// String returns the statement with the names of its arguments: :owner.
func (st Statement) String() string {
	var text strings.Builder
	for i, name := range st.args {
		text.WriteString(st.texts[i] + ":" + name)
	}
	return text.String() + st.texts[len(st.args)]
}

// With is the statement, with its arguments, as a part of another one.
func (st Statement) With(args Args) Built {
	return func(b *Builder) string { return b.Fill(st, args) }
}

// WithSome is With for arguments of which the statement has only some.
func (st Statement) WithSome(args Args) Built {
	some := make(Args, len(st.names))
	for _, name := range st.names {
		if v, ok := args[name]; ok {
			some[name] = v
		}
	}
	return st.With(some)
}

// Joined are parts of a statement with a text between them.
func Joined(between string, parts []Built) Built {
	return func(b *Builder) string {
		texts := make([]string, len(parts))
		for i, part := range parts {
			texts[i] = part(b)
		}
		return strings.Join(texts, between)
	}
}

// List is a list of parameters.
func List[T any](values []T) Built {
	return func(b *Builder) string {
		marks := make([]string, len(values))
		for i, v := range values {
			marks[i] = b.Arg(v)
		}
		return strings.Join(marks, ", ")
	}
}

// Fill adds a statement's arguments to the builder, and returns its text. It panics if an argument has no value or a
// value no argument: the caller names both in its code.
func (b *Builder) Fill(st Statement, args Args) string {
	if len(st.names) != len(args) {
		panic(fmt.Sprintf("the statement %q has the arguments %q, and got %v", st, st.Args(), args))
	}
	var text strings.Builder
	for i, name := range st.args {
		text.WriteString(st.texts[i])
		switch v, ok := args[name]; v := v.(type) {
		case SQL:
			text.WriteString(string(v))
		case Built:
			text.WriteString(v(b))
		default:
			if !ok {
				panic(fmt.Sprintf("the statement %q has no value for :%s", st, name))
			}
			text.WriteString(b.Arg(v))
		}
	}
	text.WriteString(st.texts[len(st.args)])
	return text.String()
}

// Exec runs a statement, and returns the number of rows affected.
func Exec(ctx context.Context, q Querier, s *Syntax, st Statement, args Args) (int64, error) {
	b := NewBuilder(s)
	query := b.Fill(st, args)
	return q.Exec(ctx, query, b.Args()...)
}

// One runs a query for at most one row, and scans the row. The error is sql.ErrNoRows if there is none.
func One(ctx context.Context, q Querier, s *Syntax, st Statement, args Args, dest ...any) error {
	b := NewBuilder(s)
	query := b.Fill(st, args)
	return QueryRow(ctx, q, query, b.Args(), dest...)
}

// All runs a query, and scans every row with scan.
func All[T any](ctx context.Context, q Querier, s *Syntax, st Statement, args Args,
	scan func(Rows) (T, error)) ([]T, error) {
	b := NewBuilder(s)
	query := b.Fill(st, args)
	return QueryAll(ctx, q, query, b.Args(), scan)
}
