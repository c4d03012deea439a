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

// Terms is what a database knows of a feed's history: its present state, and the highest head of each other term.
type Terms struct {
	State
	Ended map[feedtype.Term]int64
}

// Know returns true if the database comes from this state, so that it has lost nothing of the state.
func (t *Terms) Know(s State) bool {
	upto, known := t.Upto(s.Term)
	return known && s.Head <= min(upto, t.Head)
}

// Upto returns the highest head of a term that the database knows.
func (t *Terms) Upto(term feedtype.Term) (head int64, known bool) {
	if term == t.Term {
		return t.Head, true
	}
	head, known = t.Ended[term]
	return head, known
}

// Of returns the term that gave a position: the term with the lowest end at or above it. If publishers have taken
// turns, a position may get another term than before.
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

// ErrOtherHistory means that the terms and a page are from databases with different histories. The page has to be read
// again.
var ErrOtherHistory = errors.New("the database is not the one that showed the page")

// Continues returns true if the state now, which a page has shown, comes from an earlier state, and nothing of the
// earlier state was lost. It reads the terms only if the page's term differs from the present term of the last reading,
// and before it returns false. It returns the terms that it compared.
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
// left it. A pass removes it with Take, so that two passes of one process never continue from the same state: they
// could be in two copies of the database.
type Own struct {
	mu   sync.Mutex
	left left
}

// left is the state in which a pass left the sequence. States with the same head have different versions.
type left struct {
	State
	version int64
}

// Take returns the remembered state, and forgets it.
func (o *Own) Take() left {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.left
	o.left = left{}
	return was
}

// Return gives back the state that a pass took, if the pass has given no position. It does nothing if another pass has
// left its own state since.
func (o *Own) Return(was left) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left.Term == 0 {
		o.left = was
	}
}

// Leave remembers in which state a pass leaves the sequence. The pass calls it before its COMMIT. If the outcome of the
// COMMIT stays unknown, the next pass recognizes the new state, but no longer the former one.
func (o *Own) Leave(seq dialect.Sequence, head int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = left{State{head, seq.Term}, seq.Version + 1}
}

// Continue returns the term in which a pass continues a sequence that it has locked. It is the publisher's own term
// only if the sequence is exactly as the publisher left it, or if its term ended in that state. Otherwise it is a new
// term. If the term changes, Continue saves the former term's head in the transaction of the pass. lost is true if the
// database does not know the state in which the publisher left it. Then numbers of changes may come again too.
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
			// With a lower version, the feed was dropped and added again, and its changes are numbered anew.
			return was.Term, seq.Version < was.version, err
		}
	}
	term, err = drawTerm()
	return term, was.Term != 0, err
}

// EndTerms saves that the present term ends at the present head. It lowers every other term that is above that head,
// because the positions above it are lost. It deletes terms that ended long ago.
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

// drawTerm draws a term that no other publisher has, except by a chance of 2^-48. A generator whose state a copied
// machine repeats would not do.
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
