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

// Cookie is the name of the cookie with a browser's token. An EventSource in a browser cannot send a header.
const Cookie = "rowfeed_token"

const (
	defaultTrust = 2 * time.Second
	// patience is how long streams continue while the database cannot tell whether their tokens are valid.
	patience = 30 * time.Second
	// maxUnknown is the maximum number of unknown tokens that are remembered.
	maxUnknown = 1024
	// maxAsking is the maximum number of connections of the pool that look up tokens. Otherwise a client with many
	// unknown tokens could use all connections.
	maxAsking = 4
	// askingTimeout is the maximum time of a query for tokens. Otherwise a database that hangs would delay every
	// request that waits for the answer.
	askingTimeout = 5 * time.Second
)

// Authenticator determines the client of a request.
type Authenticator interface {
	// Identify returns ErrNobody for a request without credentials, and another error with the code
	// [rowfeed.Unauthorized] for unknown credentials.
	Identify(r *http.Request) (Identity, error)
}

// Tokens authenticates clients by the tokens in the database. It keeps the result of a lookup, also that a token is
// unknown, for a short time, so that a busy server does not query for every request. It is safe for concurrent use.
type Tokens struct {
	// Trust is how long a result is kept. A revoked token stays valid for at most that time. Default 2 s. Set it
	// before the first request.
	Trust time.Duration

	db     *rowfeed.DB
	asking chan struct{}

	mu      sync.Mutex
	known   map[[sha256.Size]byte]*held
	unknown map[[sha256.Size]byte]time.Time // valid until
	waiting map[*held]int
	rest    context.CancelFunc // ends watch, which runs while requests wait
}

// NewTokens returns the tokens of a database.
func NewTokens(db *rowfeed.DB) *Tokens {
	return &Tokens{db: db, asking: make(chan struct{}, maxAsking), known: map[[sha256.Size]byte]*held{},
		unknown: map[[sha256.Size]byte]time.Time{}, waiting: map[*held]int{}}
}

// held is a token that is valid, or was.
type held struct {
	of    *Tokens
	token *admin.Token
	key   [sha256.Size]byte

	life context.Context // ends with the token's validity
	end  context.CancelCauseFunc

	asking chan struct{} // held by the request that checks the token
	mu     sync.Mutex
	until  time.Time // valid until
}

// ErrNobody is the error for a request without credentials.
var ErrNobody error = &rowfeed.Error{Code: rowfeed.Unauthorized, Cause: "the request has no token",
	Next: "send the header Authorization: Bearer, with a token that `rowfeed token add` has made"}

var (
	errUnknown = &rowfeed.Error{Code: rowfeed.Unauthorized, Cause: "the token is unknown, or no longer valid",
		Next: "ask for a new one: `rowfeed token add` makes it"}
	errScheme = &rowfeed.Error{Code: rowfeed.Unauthorized,
		Cause: "the request must have one Authorization header, of the form Bearer TOKEN",
		Next:  "send Authorization: Bearer, with a token that `rowfeed token add` has made"}
)

// Identify implements [Authenticator]. It reads the header Authorization: Bearer or, without it, the cookie. It never
// reads the URL, which ends up in logs and histories. An invalid cookie counts as no credentials: its browser must
// still reach the login.
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

// Of returns the identity of a token. If the token is not valid, the error has the code [rowfeed.Unauthorized].
func (t *Tokens) Of(ctx context.Context, text string) (Identity, error) {
	h, err := t.find(ctx, text)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Name: h.token.Name, Grants: h.token.Grants, View: h.token.View, token: h}, nil
}

// bearer returns the token in the header.
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

// find returns the token with this text. Like the database it looks up a hash, so the time of the comparison reveals
// nothing about a token.
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
	if h, err := t.remembered(ctx, key); h != nil || err != nil { // another request has looked it up meanwhile
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
	h.markValid(asked, token)
	t.known[key] = h
	return h, nil
}

// remembered returns the kept result of a lookup. If it is too old, remembered checks that the token is still valid.
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

// markValid keeps the token as valid, counted from the time of the query.
func (h *held) markValid(asked time.Time, token *admin.Token) {
	trust := h.of.trust()
	if token.Left > 0 {
		trust = min(trust, token.Left)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = asked.Add(trust)
}

// knownValid tells whether the token is valid without a query, with by added to its time.
func (h *held) knownValid(by time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.until.Add(by))
}

// check returns an error once the token is no longer valid. If several requests check at the same time, one of them
// queries.
func (h *held) check(ctx context.Context) error {
	if h.life.Err() != nil {
		return context.Cause(h.life)
	}
	if h.knownValid(0) {
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
	if h.knownValid(0) {
		return nil
	}
	if err := h.of.confirm(ctx, []*held{h}); err != nil {
		return err
	}
	return context.Cause(h.life)
}

// confirm queries which of the tokens are still valid, and ends the others.
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
				h.markValid(asked, token)
			}
		}
		if !still {
			t.forget(h, errUnknown)
		}
	}
	return nil
}

// forget ends a token, and the requests that wait with it.
func (t *Tokens) forget(h *held, why error) {
	t.mu.Lock()
	delete(t.known, h.key)
	t.mu.Unlock()
	h.end(why)
}
