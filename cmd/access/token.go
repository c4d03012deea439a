package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
)

// Cookie is where browsers have a token, which cannot send a header of their own with an
// EventSource.
const Cookie = "rowfeed_token"

const (
	defaultTrust = 2 * time.Second
	// patience is for how long streams go on while nobody can be asked whether their tokens hold.
	patience = 30 * time.Second
	// maxUnknown bounds how many texts are remembered that are no token's.
	maxUnknown = 1024
	// maxAsking bounds how many connections of the pool look for tokens: whoever sends many
	// that there are not must leave the others to those who read.
	maxAsking = 4
	// askingTimeout bounds a question: a database that hangs must not keep whoever asks, and all
	// who wait for the answer with them, for as long as they can wait.
	askingTimeout = 5 * time.Second
)

// Authenticator tells who sends a request.
type Authenticator interface {
	// Identify answers ErrNobody where nobody says who they are, and another error with the
	// code [rowfeed.Unauthorized] where nobody knows them.
	Identify(r *http.Request) (Identity, error)
}

// Tokens knows identities by the tokens in the database. What is known of one is believed
// for a moment, so that a busy server does not ask for every request; and so is that there is
// none. It is safe for concurrent use.
type Tokens struct {
	// Trust is for how long. A token that is revoked is good for so much longer, at most.
	// Default 2 s; to be set before the first request.
	Trust time.Duration

	db     *rowfeed.DB
	asking chan struct{}

	mu      sync.Mutex
	known   map[[sha256.Size]byte]*held
	unknown map[[sha256.Size]byte]time.Time // believed until
	waiting map[*held]int
	rest    context.CancelFunc // ends the watching, which goes on while somebody waits
}

// NewTokens are the tokens of a database.
func NewTokens(db *rowfeed.DB) *Tokens {
	return &Tokens{db: db, asking: make(chan struct{}, maxAsking), known: map[[sha256.Size]byte]*held{},
		unknown: map[[sha256.Size]byte]time.Time{}, waiting: map[*held]int{}}
}

// held is a token that holds, or did.
type held struct {
	of    *Tokens
	token *admin.Token
	key   [sha256.Size]byte

	life context.Context // ends with the token
	end  context.CancelCauseFunc

	asking chan struct{} // holds one: who asks whether it still holds
	mu     sync.Mutex
	until  time.Time // believed until
}

// ErrNobody: nobody says who they are.
var ErrNobody error = &rowfeed.Error{Code: rowfeed.Unauthorized, Cause: "this server wants to know who asks",
	Next: "send the header Authorization: Bearer, with a token that `rowfeed token add` has made"}

var (
	errUnknown = &rowfeed.Error{Code: rowfeed.Unauthorized, Cause: "the token is not known here, or holds no more",
		Next: "ask for another one: `rowfeed token add` makes it"}
	errScheme = &rowfeed.Error{Code: rowfeed.Unauthorized,
		Cause: "the Authorization header is not a single one of the form Bearer and a token",
		Next:  "send Authorization: Bearer, with a token that `rowfeed token add` has made"}
)

// Identify implements [Authenticator]: by the header Authorization: Bearer, or where there is
// none by the cookie. Never by the address, which ends up in logs and histories. A cookie that is
// good no more is none: whoever has it must get to where there are others.
func (t *Tokens) Identify(r *http.Request) (Identity, error) {
	text, err := bearer(r)
	if errors.Is(err, ErrNobody) {
		cookie, missing := r.Cookie(Cookie)
		if missing != nil {
			return Identity{}, ErrNobody
		}
		who, err := t.Of(r.Context(), cookie.Value)
		if errors.Is(err, rowfeed.Unauthorized) {
			err = ErrNobody
		}
		return who, err
	}
	if err != nil {
		return Identity{}, err
	}
	return t.Of(r.Context(), text)
}

// Of is the identity of whoever has the token of this text; the error's code is
// [rowfeed.Unauthorized] where there is none.
func (t *Tokens) Of(ctx context.Context, text string) (Identity, error) {
	h, err := t.find(ctx, text)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Name: h.token.Name, Grants: h.token.Grants, View: h.token.View, token: h}, nil
}

// bearer is the text of the token in the header.
func bearer(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return "", ErrNobody
	}
	scheme, text, ok := strings.Cut(headers[0], " ")
	if text = strings.TrimSpace(text); len(headers) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") || text == "" {
		return "", errScheme
	}
	return text, nil
}

func (t *Tokens) trust() time.Duration {
	if t.Trust > 0 {
		return t.Trust
	}
	return defaultTrust
}

// find answers the token of a text. It is known by its hash alone, as in the database: what
// is compared here is nothing that anybody could send piece by piece.
func (t *Tokens) find(ctx context.Context, text string) (*held, error) {
	if !admin.IsTokenText(text) {
		return nil, errUnknown
	}
	key := sha256.Sum256([]byte(text))
	if h, err := t.remembered(ctx, key); h != nil || err != nil {
		return h, err
	}
	ctx, cancel := context.WithTimeout(ctx, askingTimeout)
	defer cancel()
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if h, err := t.remembered(ctx, key); h != nil || err != nil { // somebody else has asked meanwhile
		return h, err
	}
	asked := time.Now()
	token, err := t.db.Admin().TokenOf(ctx, text)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(err, rowfeed.UnknownToken):
		if len(t.unknown) >= maxUnknown {
			clear(t.unknown)
		}
		t.unknown[key] = asked.Add(t.trust())
		return nil, errUnknown
	case err != nil:
		return nil, err
	}
	if h := t.known[key]; h != nil {
		return h, nil
	}
	h := &held{of: t, token: token, key: key, asking: make(chan struct{}, 1)}
	h.life, h.end = context.WithCancelCause(context.Background())
	h.believe(asked, token)
	t.known[key] = h
	return h, nil
}

// remembered answers what is known without asking, or asks whether it still holds.
func (t *Tokens) remembered(ctx context.Context, key [sha256.Size]byte) (*held, error) {
	t.mu.Lock()
	h, until := t.known[key], t.unknown[key]
	t.mu.Unlock()
	switch {
	case h != nil:
		return h, h.check(ctx)
	case time.Now().Before(until):
		return nil, errUnknown
	}
	return nil, nil
}

// believe takes it as holding, from the moment when the database was asked.
func (h *held) believe(asked time.Time, token *admin.Token) {
	trust := h.of.trust()
	if token.Left > 0 {
		trust = min(trust, token.Left)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = asked.Add(trust)
}

// sure tells whether it need not be asked for; by is how much longer it may have been.
func (h *held) sure(by time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.until.Add(by))
}

// check answers an error once the token holds no more. One of all who want to know asks.
func (h *held) check(ctx context.Context) error {
	if h.life.Err() != nil {
		return context.Cause(h.life)
	}
	if h.sure(0) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askingTimeout)
	defer cancel()
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if h.sure(0) {
		return nil
	}
	if err := h.of.confirm(ctx, []*held{h}); err != nil {
		return err
	}
	return context.Cause(h.life)
}

// confirm asks which tokens still hold, and ends the others.
func (t *Tokens) confirm(ctx context.Context, some []*held) error {
	asked := time.Now()
	tokens := make([]*admin.Token, len(some))
	for i, h := range some {
		tokens[i] = h.token
	}
	holding, err := t.db.Admin().StillHold(ctx, tokens)
	if err != nil {
		return err
	}
	for _, h := range some {
		still := false
		for _, token := range holding {
			if token.Same(h.token) {
				still = true
				h.believe(asked, token)
			}
		}
		if !still {
			t.forget(h, errUnknown)
		}
	}
	return nil
}

// forget ends a token, and with it what waits by it.
func (t *Tokens) forget(h *held, why error) {
	t.mu.Lock()
	delete(t.known, h.key)
	t.mu.Unlock()
	h.end(why)
}
