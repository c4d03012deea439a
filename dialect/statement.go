package dialect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
//	{{now}}             the database's clock: [Spelling].Now
//	{{limit ":count"}}  the end of a statement with ORDER BY that answers at most so many rows
//	{{quote "a"}}       a quoted name
//	{{literal "a"}}     a literal
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
}

// Limiter is implemented by databases that do not have LIMIT.
type Limiter interface {
	// Limit ends a statement with ORDER BY that answers at most so many rows, a number or a parameter.
	Limit(rows string) string
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
		if body < 0 || all.templates.Lookup(lines[0]) != nil {
			panic(fmt.Sprintf("statement %q is empty or there twice", lines[0]))
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

func functions(s Spelling, n Names) template.FuncMap {
	return template.FuncMap{
		"table":     func(base string) string { return Qualified(s, n.Table(base)) },
		"own_index": func(base string) string { return s.Quote(n.Table(base).Name) },
		"now":       func() string { return s.Now() },
		"quote":     func(name string) string { return s.Quote(name) },
		"literal":   func(text string) string { return s.Literal(text) },
		"limit": func(rows string) string {
			if l, ok := s.(Limiter); ok {
				return l.Limit(rows)
			}
			return "LIMIT " + rows
		},
	}
}

// words are the words of statements about the feed:
//
//	{{source}} {{changes}} {{positions}} {{batch}} {{records}} {{places}}   its tables
//	{{object "insert"}}       the quoted name of one of its triggers or indexes
//	{{routine "capture"}}     the name of one of its functions, with the schema
//	{{feed}}                  its name, as a literal
//	{{key}} {{key "c"}}       the key columns of a row of one of rowfeed's tables: "id"; c."id"
//	{{row}} {{row "t"}}       the key columns of a row of the source
//	{{ordered "t"}}           the same, as they are compared and ordered
//	{{one_of_key "c"}}        the first of the key columns, which is NULL only if a join found no row
//	{{one_of_row "t"}}
//	{{same_rows "a" "b"}}     the condition that two rows of the source have the same key, with the operator <=>
//	{{same_key "a" "b"}}      the condition that rows of two of rowfeed's tables have the same key
//	{{row_of "t" "c"}}        the condition that row t of the source has the key of row c of one of rowfeed's tables
//	{{numbered_row "t"}}      the key columns of a row of the source under the names k0, k1 and so on
//	{{numbered "x"}}          these names: x.k0, x.k1
//	{{key_is_numbered "p" "x"}}   the condition that a row of one of rowfeed's tables has the key x.k0, x.k1
//	{{read_key "c"}} {{read_row "t"}} {{read_numbered "x"}}   the same columns as [Spelling].Value reads them
//	{{declared_key}}          the key columns as rowfeed's tables declare them
//	{{bucket "j.shard" "/"}}  the bucket of a data shard, given the operator that divides integers
//
// The dot is the feed itself, for {{if .Outbox}}.
func (f *Feed) words(s Spelling) template.FuncMap {
	refs := func(of func(Spelling, *Feed, string) []string) func(...string) string {
		return func(alias ...string) string {
			return strings.Join(of(s, f, strings.Join(alias, "")), ", ")
		}
	}
	numbered := func(_ Spelling, f *Feed, alias string) []string {
		names := make([]string, len(f.Key))
		for i := range names {
			names[i] = alias + ".k" + strconv.Itoa(i)
		}
		return names
	}
	read := func(of func(Spelling, *Feed, string) []string) func(...string) string {
		return func(alias ...string) string {
			return strings.Join(keyValues(s, f.Key, of(s, f, strings.Join(alias, ""))), ", ")
		}
	}
	return template.FuncMap{
		"numbered":      refs(numbered),
		"read_key":      read(StoredRefs),
		"read_row":      read(KeyRefs),
		"read_numbered": read(numbered),
		"numbered_row": func(alias string) string {
			row := KeyRefs(s, f, alias)
			for i := range row {
				row[i] += " AS k" + strconv.Itoa(i)
			}
			return strings.Join(row, ", ")
		},
		"same_rows": func(a, b string) string {
			return Pairwise(KeyRefs(s, f, a), KeyRefs(s, f, b), " <=> ", " AND ")
		},
		"key_is_numbered": func(own, alias string) string {
			return EqualKeys(f, StoredRefs(s, f, own), numbered(s, f, alias))
		},
		"source":     func() string { return Qualified(s, f.Source) },
		"changes":    func() string { return Qualified(s, f.Changes()) },
		"positions":  func() string { return Qualified(s, f.Positions()) },
		"batch":      func() string { return Qualified(s, f.Batch()) },
		"records":    func() string { return Qualified(s, f.Records()) },
		"places":     func() string { return Qualified(s, f.Placed()) },
		"object":     func(suffix string) string { return s.Quote(f.Object(suffix)) },
		"routine":    func(suffix string) string { return Qualified(s, f.Routine(suffix)) },
		"feed":       func() string { return s.Literal(f.Name) },
		"key":        refs(StoredRefs),
		"row":        refs(KeyRefs),
		"ordered":    refs(OrderedKey),
		"one_of_key": func(alias string) string { return Ref(s, alias, f.Key[0].Stored) },
		"one_of_row": func(alias string) string { return Ref(s, alias, f.Key[0].Name) },
		"same_key":   func(a, b string) string { return StoredJoin(s, f, a, b) },
		"row_of":     func(src, own string) string { return SourceJoin(s, f, src, own) },
		"bucket":     func(shard, div string) string { return f.Bucket(shard, div) },
		"declared_key": func() string {
			decls := make([]string, len(f.Key))
			for i, c := range f.Key {
				decls[i] = strings.TrimSpace(s.Quote(c.Stored)+" "+c.Decl) + " NOT NULL" + c.Collate
			}
			return strings.Join(decls, ",\n  ")
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

// Has tells whether there is a statement of this name.
func (all *Statements) Has(name string) bool { return all.templates.Lookup(name) != nil }

// Render returns a statement for a database and the names of rowfeed's tables in it.
func (all *Statements) Render(s Spelling, n Names, name string) (Statement, error) {
	return all.render(functions(s, n), name, nil)
}

// RenderFor returns a statement about a feed. The statement depends on the feed's layout only.
func (all *Statements) RenderFor(s Spelling, f *Feed, name string) (Statement, error) {
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
func (all *Statements) For(s Spelling, f *Feed, name string) Statement {
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
func (all *Statements) Step(s Spelling, f *Feed, name string, args Args) Step {
	st := all.For(s, f, name)
	return Step{Note: st.Note, SQL: NewScript(s).Fill(st, args)}
}

// keep has the statements of a feed that does not change any more.
type keep struct {
	of       *Feed // a copy of the feed has the same pointer, but may be changed
	rendered sync.Map
}

// Keep lets the feed remember its statements. It must not be changed afterwards; a copy of it may.
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

// With is the statement, with its arguments, as a part of another one.
func (st Statement) With(args Args) Built {
	return func(b *Builder) string { return b.Fill(st, args) }
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

// Fill adds a statement's arguments to the builder, and returns its text. It panics if an argument has no value or a
// value no argument: the caller names both in its code.
func (b *Builder) Fill(st Statement, args Args) string {
	if names := st.Args(); len(names) != len(args) {
		panic(fmt.Sprintf("the statement %q has the arguments %q, and got %v", st, names, args))
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
func Exec(ctx context.Context, q Querier, s Spelling, st Statement, args Args) (int64, error) {
	b := NewBuilder(s)
	query := b.Fill(st, args)
	return q.Exec(ctx, query, b.Args()...)
}

// One runs a query for at most one row, and scans the row. The error is sql.ErrNoRows if there is none.
func One(ctx context.Context, q Querier, s Spelling, st Statement, args Args, dest ...any) error {
	b := NewBuilder(s)
	query := b.Fill(st, args)
	return QueryRow(ctx, q, query, b.Args(), dest...)
}

// All runs a query, and scans every row with scan.
func All[T any](ctx context.Context, q Querier, s Spelling, st Statement, args Args,
	scan func(Rows) (T, error)) ([]T, error) {
	b := NewBuilder(s)
	query := b.Fill(st, args)
	return QueryAll(ctx, q, query, b.Args(), scan)
}

// SameText tells whether two bodies of a trigger or a function differ at most in white space outside of literals and
// quoted names, and in comments.
func SameText(a, b string) bool { return words(a) == words(b) }

// words returns a text without comments, with one blank in place of white space.
func words(text string) string {
	var b strings.Builder
	blank := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			blank = true
			continue
		case strings.HasPrefix(text[i:], "-- "):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				end = len(text) - i
			}
			i += end - 1
			blank = true
			continue
		}
		if blank && b.Len() > 0 {
			b.WriteByte(' ')
		}
		blank = false
		if c == '\'' || c == '"' || c == '`' {
			if end := strings.IndexByte(text[i+1:], c); end >= 0 {
				b.WriteString(text[i : i+end+2])
				i += end + 1
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
