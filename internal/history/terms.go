package history

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed terms.sql
var file string

var statements = dialect.NewStatements(file)

// State is a state of a feed's sequence: its head, and the term of that head.
type State struct {
	Head int64
	Term feedtype.Term
}

// Terms is what a database knows of a feed's history: its present state, and up to which head each other term went.
type Terms struct {
	State
	Ended map[feedtype.Term]int64
}

// Know tells whether the database has been in this state, so that it has lost nothing of it.
func (t *Terms) Know(s State) bool {
	upto, known := t.Upto(s.Term)
	return known && s.Head <= min(upto, t.Head)
}

// Upto returns up to which head the database knows a term.
func (t *Terms) Upto(term feedtype.Term) (head int64, known bool) {
	if term == t.Term {
		return t.Head, true
	}
	head, known = t.Ended[term]
	return head, known
}

// Of returns the term that gave a position: the one that ended lowest at or above it. If publishers have taken turns, a
// position may get another term than before.
func (t *Terms) Of(position int64) feedtype.Term {
	of, lowest := t.Term, int64(math.MaxInt64)
	for term, upto := range t.Ended {
		if position <= upto && upto < lowest && term != t.Term {
			of, lowest = term, upto
		}
	}
	return of
}

// known caches the terms of one feed.
type known struct {
	mu    sync.Mutex
	terms *Terms
}

// ErrOtherHistory means that the database which showed a page is not, or no longer, the one that tells the terms. The
// page has to be read again.
var ErrOtherHistory = errors.New("the database is not the one that showed the page")

// Continues tells whether the state now, which a page has shown, came after an earlier state, and nothing of that was
// lost. It reads the terms only if the page's term is another than that of the last reading, and before it answers no.
// Terms are then what the database knows.
func (h *History) Continues(ctx context.Context, now, earlier State) (ok bool, terms *Terms, err error) {
	present := &Terms{State: now}
	if present.Know(earlier) {
		return true, present, nil
	}
	if present.Ended = h.known.of(now.Term); present.Know(earlier) {
		return true, present, nil
	}
	if terms, err = h.readTerms(ctx, now); err != nil {
		return false, nil, err
	}
	return earlier.Head <= now.Head && terms.Know(earlier), terms, nil
}

// Terms returns the terms that a database knows in a state which a page has shown.
func (h *History) Terms(ctx context.Context, now State) (*Terms, error) {
	if ended := h.known.of(now.Term); ended != nil {
		return &Terms{State: now, Ended: ended}, nil
	}
	return h.readTerms(ctx, now)
}

func (h *History) readTerms(ctx context.Context, now State) (*Terms, error) {
	terms, err := ReadTerms(ctx, h.feed, h.feed.Store.On())
	if err != nil {
		return nil, h.feed.Fail("read its terms", err)
	}
	if !terms.Know(now) {
		return nil, ErrOtherHistory
	}
	h.known.mu.Lock()
	h.known.terms = terms
	h.known.mu.Unlock()
	return terms, nil
}

// of returns the ended terms, as they were read when this was the present term; nil if they were not.
func (k *known) of(present feedtype.Term) map[feedtype.Term]int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.terms == nil || k.terms.Term != present {
		return nil
	}
	return k.terms.Ended
}

// ReadTerms reads a feed's terms with its present state, in one statement.
func ReadTerms(ctx context.Context, f *catalog.Feed, q dialect.Querier) (*Terms, error) {
	t := &Terms{Ended: map[feedtype.Term]int64{}}
	_, err := dialect.All(ctx, q, f.Store.Dialect.Syntax, f.Statement(statements, "terms"),
		dialect.Args{"feed": f.Name},
		func(rows dialect.Rows) (struct{}, error) {
			var ended State
			err := rows.Scan(&t.Head, &t.Term, &ended.Term, &ended.Head)
			if ended.Term != 0 {
				t.Ended[ended.Term] = ended.Head
			}
			return struct{}{}, err
		})
	return t, err
}

// Own is what a publisher remembers of its own term: the state in which its last pass left the sequence, or may have
// left it. A pass takes it, so that two passes of one process never go on from the same state: they could be in two
// copies of the database.
type Own struct {
	mu   sync.Mutex
	left left
}

// left is the state in which a pass left the sequence. The version tells states with the same head apart.
type left struct {
	State
	version int64
}

// Take returns what is remembered, and forgets it.
func (o *Own) Take() left {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.left
	o.left = left{}
	return was
}

// Return gives back what a pass took that has given no position. It is too late if another pass has left its own.
func (o *Own) Return(was left) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left.Term == 0 {
		o.left = was
	}
}

// Leave remembers in which state a pass leaves the sequence. The pass calls it before its COMMIT: if the outcome of the
// COMMIT is never known, the state is recognized if it is there, and the former state is no longer taken for the last.
func (o *Own) Leave(seq dialect.Sequence, head int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = left{State{head, seq.Term}, seq.Version + 1}
}

// Continue returns the term in which a pass goes on from a sequence that it has locked. It is the publisher's own term
// only if the sequence is exactly as the publisher left it, or if its term ended in that state. Otherwise it is a new
// term. If the term changes, Continue writes down, in the transaction of the pass, how far the one before went. Lost
// says that the database does not know the state in which the publisher left it. Numbers of changes may then come again
// too.
func (was left) Continue(ctx context.Context, tx dialect.Querier, st *store.Store, feed string,
	seq dialect.Sequence) (term feedtype.Term, lost bool, err error) {
	if was.Term != 0 && was.Term == seq.Term && was.version == seq.Version {
		return was.Term, false, nil
	}
	if err := EndTerms(ctx, tx, st, feed, seq); err != nil {
		return 0, false, err
	}
	if was.Term != 0 {
		var n int
		err := st.One(ctx, tx, statements, "ended_at",
			dialect.Args{"feed": feed, "term": int64(was.Term), "head": was.Head}, &n)
		if err != nil || n == 1 {
			// A lower version is that of a feed that was dropped and added again. Its changes are numbered anew.
			return was.Term, seq.Version < was.version, err
		}
	}
	term, err = drawTerm()
	return term, was.Term != 0, err
}

// EndTerms writes down that the present term ends at the present head. No other term goes further: what was above is
// lost. It deletes terms that ended long ago.
func EndTerms(ctx context.Context, tx dialect.Querier, st *store.Store, feed string, seq dialect.Sequence) error {
	_, err := st.Exec(ctx, tx, statements, "lower", dialect.Args{"feed": feed, "head": seq.Value})
	if err != nil || seq.Term == 0 {
		return err
	}
	b := dialect.NewBuilder(st.Dialect.Syntax)
	upsert := st.Dialect.Upsert(st.Table("terms"), []string{"feed", "term", "upto", "ended_at"},
		[][]string{{b.Arg(feed), b.Arg(int64(seq.Term)), b.Arg(seq.Value), b.Arg(seq.Now)}}, []string{"feed", "term"})
	if _, err := tx.Exec(ctx, upsert, b.Args()...); err != nil {
		return err
	}
	return purgeTerms(ctx, tx, st, feed, seq.Now)
}

const (
	// termsKept and termsAge bound the table of terms. A reader whose term was purged is refused.
	termsKept = 10_000
	termsAge  = 90 * 24 * time.Hour
)

// purgeTerms deletes the terms that ended more than termsAge ago, except for the newest ones.
func purgeTerms(ctx context.Context, tx dialect.Querier, st *store.Store, feed string, now int64) error {
	var n, newest int64
	err := st.One(ctx, tx, statements, "count", dialect.Args{"feed": feed}, &n)
	if err != nil || n <= termsKept {
		return err
	}
	err = st.One(ctx, tx, statements, "newest", dialect.Args{"feed": feed, "count": termsKept}, &newest)
	if err != nil {
		return err
	}
	_, err = st.Exec(ctx, tx, statements, "purge",
		dialect.Args{"feed": feed, "before": min(newest, now-termsAge.Microseconds())})
	return err
}

// drawTerm draws a term that no other publisher has, except by a chance of 2^-48. A generator that a copied machine
// would repeat is not good enough.
func drawTerm() (feedtype.Term, error) {
	for {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return 0, err
		}
		if t := feedtype.Term(binary.BigEndian.Uint64(random[:]) >> 16); t >= feedtype.LowestTerm {
			return t, nil
		}
	}
}
