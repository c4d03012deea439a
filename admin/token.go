package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Right is a right that a token gives on a feed.
type Right string

// The rights. No right includes another: RightAdminister does not include reading rows.
const (
	// RightRead permits to fetch, stream and describe a feed.
	RightRead Right = "read"
	// RightPublish permits consistent=true, and to republish and unpublish keys.
	RightPublish Right = "publish"
	// RightAdminister permits to move and pause consumers, release leases, and retry and drop dead letters.
	RightAdminister Right = "administer"
)

// Rights are all rights.
var Rights = []Right{RightRead, RightPublish, RightAdminister}

// EveryFeed as TokenGrant.Feed means all feeds, also future ones.
const EveryFeed = "*"

// TokenGrant is one right, on one feed or on EveryFeed.
type TokenGrant struct {
	Right Right  `json:"right"`
	Feed  string `json:"feed"`
}

// TokenSpec describes a token to add.
type TokenSpec struct {
	// Name names the token in lists and in the audit log. A name is never used again, so that the log stays clear.
	Name   string
	Grants []TokenGrant
	// View restricts what the token shows of every feed that it may read.
	View feedtype.View
	// Expires is how long the token is valid, on the database's clock: 1 s to 100 years, or 0 for ever.
	Expires time.Duration
}

// Token is a token as stored in the database, which does not have its text.
type Token struct {
	Name      string        `json:"name"`
	State     string        `json:"state"` // TokenHolds, TokenExpired, TokenRevoked or TokenUnreadable
	Grants    []TokenGrant  `json:"grants"`
	View      feedtype.View `json:"view"`
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt *time.Time    `json:"expires_at"` // nil if it does not expire
	RevokedAt *time.Time    `json:"revoked_at"` // nil if it was not revoked
	// Left is how long the token is still valid, on the database's clock; 0 if it does not expire.
	Left time.Duration `json:"-"`

	sha256 string
}

// The states of a token.
const (
	TokenHolds   = "holds"
	TokenExpired = "expired"
	TokenRevoked = "revoked"
	// TokenUnreadable is a token whose record is damaged, or of a newer rowfeed. It gives no right.
	TokenUnreadable = "unreadable"
)

const (
	// tokenPrefix begins a token's text, so that people and secret scanners recognize it.
	tokenPrefix = "rf_"
	tokenBytes  = 32
	maxExpires  = 100 * 365 * 24 * time.Hour
	// tokensTogether is how many tokens one statement reads.
	tokensTogether = 500
)

var tokenNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$`)

func tokenObject(name string) string { return fmt.Sprintf("token %q", name) }

// IsTokenText tells whether a text has the form of a token's text. Other texts need not be looked up.
func IsTokenText(text string) bool {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	return ok && err == nil && len(raw) == tokenBytes &&
		len(rest) == base64.RawURLEncoding.EncodedLen(tokenBytes) // the decoder ignores line breaks
}

// hashToken is what the database stores of a token. It needs neither salt nor stretching, since the text has 256 random
// bits.
func hashToken(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (s TokenSpec) validate() error {
	switch {
	case s.Name == "everyone":
		return feedtype.Invalid("name",
			"%q is reserved: it is the name of all users of a server without authentication, also in the audit log",
			s.Name)
	case !tokenNamePattern.MatchString(s.Name):
		return feedtype.Invalid("name",
			"%q is not a valid name: use a letter or digit, then up to 99 letters, digits, '.', '_', '@' and '-'",
			s.Name)
	case len(s.Grants) == 0:
		return feedtype.Invalid("right", "a token needs a right: give one of read, publish, administer")
	case s.Expires < 0 || s.Expires > 0 && s.Expires < time.Second || s.Expires > maxExpires:
		return feedtype.Invalid("expires", "%s must be from 1s to 100 years", s.Expires)
	}
	for _, g := range s.Grants {
		if !slices.Contains(Rights, g.Right) {
			return feedtype.Invalid("right", "%q is not one of: read, publish, administer", g.Right)
		}
		if g.Right == RightAdminister && !s.View.IsZero() {
			return &feedtype.Error{
				Code:   feedtype.InvalidRequest,
				Param:  "right",
				Object: tokenObject(s.Name),
				Cause: "a token with a view cannot have the right to administer, which shows the keys of all rows, " +
					"for example in dead letters",
				Next: "make two tokens, one with the view and one with the right",
			}
		}
		if g.Feed == EveryFeed {
			continue
		}
		if err := feedtype.ValidName(g.Feed); err != nil {
			return err
		}
	}
	return s.View.Validate()
}

// AddToken makes a token and returns its text, which cannot be read again: the database stores its SHA-256 only. The
// feeds must exist, and have the columns of the view. A name that is or was in use is an error with the code Conflict.
func (db *Admin) AddToken(ctx context.Context, spec TokenSpec) (text string, t *Token, err error) {
	if err := spec.validate(); err != nil {
		return "", nil, err
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return "", nil, err
	}
	if err := db.viewFits(ctx, spec); err != nil {
		return "", nil, err
	}
	grants, err := json.Marshal(spec.grants())
	if err != nil {
		return "", nil, err
	}
	view, err := json.Marshal(spec.View)
	if err != nil {
		return "", nil, err
	}
	raw := make([]byte, tokenBytes)
	rand.Read(raw) // never fails
	text = tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	err = db.store.InTx(ctx, dialect.ForRecord, "add token "+spec.Name, func(tx dialect.Querier) error {
		n, err := db.store.Exec(ctx, tx, statements, "add_token", dialect.Args{"name": spec.Name,
			"hash": hashToken(text), "grants": string(grants), "view": string(view),
			"lifetime": store.Micros(spec.Expires)})
		if err == nil && n != 1 {
			err = &feedtype.Error{
				Code:   feedtype.Conflict,
				Object: tokenObject(spec.Name),
				Cause:  "a token of this name exists or existed",
				Next:   "use another name: the audit log identifies tokens by name",
			}
		}
		return err
	})
	if err != nil {
		return "", nil, db.store.Fail(tokenObject(spec.Name), "add it", err)
	}
	t, err = db.tokenOf(ctx, text)
	return text, t, err
}

// grants returns the spec's grants, sorted and without duplicates.
func (s TokenSpec) grants() []TokenGrant {
	all := slices.Clone(s.Grants)
	slices.SortFunc(all, func(a, b TokenGrant) int {
		return strings.Compare(a.Feed+" "+string(a.Right), b.Feed+" "+string(b.Right))
	})
	return slices.Compact(all)
}

// viewFits refuses feeds that do not exist, and a view that does not fit one of the feeds.
func (db *Admin) viewFits(ctx context.Context, spec TokenSpec) error {
	var feeds []Source
	for _, g := range spec.Grants {
		if g.Feed != EveryFeed {
			f, err := db.feed(ctx, g.Feed)
			if err != nil {
				return err
			}
			feeds = append(feeds, f)
		} else if !spec.View.IsZero() {
			all, err := db.feeds(ctx)
			if err != nil {
				return err
			}
			feeds = append(feeds, all...)
		}
	}
	if spec.View.IsZero() {
		return nil
	}
	for _, f := range feeds {
		info, err := f.Info(ctx)
		if err == nil {
			err = spec.View.Fits(info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TokenOf returns the token with this text if it is valid now, on the database's clock; otherwise the error has the
// code UnknownToken. The database looks up the SHA-256, whose beginning a client cannot choose, so the time of the
// answer tells nothing about the texts of other tokens.
func (db *Admin) TokenOf(ctx context.Context, text string) (*Token, error) {
	if !IsTokenText(text) {
		return nil, errUnknownToken
	}
	return db.tokenOf(ctx, text)
}

var errUnknownToken = &feedtype.Error{
	Code:   feedtype.UnknownToken,
	Object: "token",
	Cause:  "no valid token has this text",
	Next:   "ask an operator for a token: `rowfeed token add` makes one",
}

func (db *Admin) tokenOf(ctx context.Context, text string) (*Token, error) {
	found, err := store.All(ctx, db.store, db.store.On(), statements, "token", dialect.Args{"hash": hashToken(text)},
		scanToken)
	switch {
	case err != nil:
		return nil, db.store.FailOwn(ctx, "tokens", "look up a token", err)
	case len(found) == 0 || found[0].State != TokenHolds:
		return nil, errUnknownToken
	}
	return found[0], nil
}

// StillHold returns those of the tokens that are still valid. Nothing else of a token ever changes.
func (db *Admin) StillHold(ctx context.Context, tokens []*Token) (holding []*Token, err error) {
	for some := range slices.Chunk(tokens, tokensTogether) {
		hashes := make([]string, len(some))
		for i, t := range some {
			hashes[i] = t.sha256
		}
		found, err := store.All(ctx, db.store, db.store.On(), statements, "tokens",
			dialect.Args{"hashes": dialect.List(hashes)}, scanToken)
		if err != nil {
			return nil, db.store.FailOwn(ctx, "tokens", "read which tokens are valid", err)
		}
		for _, t := range found {
			if t.State == TokenHolds {
				holding = append(holding, t)
			}
		}
	}
	return holding, nil
}

// Same tells whether both tokens have the same text.
func (t *Token) Same(other *Token) bool { return t.sha256 == other.sha256 }

// Tokens lists all tokens by name, also expired and revoked ones.
func (db *Admin) Tokens(ctx context.Context) ([]*Token, error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	all, err := store.All(ctx, db.store, db.store.On(), statements, "list_tokens", nil, scanToken)
	return all, db.store.Fail("tokens", "list them", err)
}

func scanToken(rows dialect.Rows) (*Token, error) {
	t := &Token{State: TokenHolds}
	var grants, view string
	var created, now int64
	var expires, revoked sql.NullInt64
	if err := rows.Scan(&t.Name, &t.sha256, &grants, &view, &created, &expires, &revoked, &now); err != nil {
		return nil, err
	}
	if !readRecord(grants, &t.Grants) || !readRecord(view, &t.View) {
		t.State, t.Grants, t.View = TokenUnreadable, nil, feedtype.View{}
	}
	at := func(micros sql.NullInt64) *time.Time {
		if !micros.Valid {
			return nil
		}
		then := time.UnixMicro(micros.Int64).UTC()
		return &then
	}
	t.CreatedAt, t.ExpiresAt, t.RevokedAt = time.UnixMicro(created).UTC(), at(expires), at(revoked)
	switch {
	case revoked.Valid:
		t.State = TokenRevoked
	case expires.Valid && expires.Int64 <= now:
		t.State = TokenExpired
	case expires.Valid:
		t.Left = time.Duration(expires.Int64-now) * time.Microsecond
	}
	return t, nil
}

// readRecord decodes a part of a token's record. It refuses unknown fields, since they might restrict the token.
func readRecord(text string, into any) bool {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return text != "null" && d.Decode(into) == nil
}

// RevokeToken revokes a token, and returns whether it was not revoked before. Servers refuse the token within seconds.
// An unknown name is an error with the code UnknownToken.
func (db *Admin) RevokeToken(ctx context.Context, name string) (ended bool, err error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return false, err
	}
	var n, known int64
	err = db.store.InTx(ctx, dialect.ForRecord, "revoke token", func(tx dialect.Querier) (err error) {
		args := dialect.Args{"name": name}
		if n, err = db.store.Exec(ctx, tx, statements, "revoke_token", args); err != nil {
			return err
		}
		return db.store.One(ctx, tx, statements, "count_tokens", args, &known)
	})
	switch {
	case err != nil:
		return false, db.store.Fail(tokenObject(name), "revoke it", err)
	case known == 0:
		return false, &feedtype.Error{
			Code:   feedtype.UnknownToken,
			Object: tokenObject(name),
			Cause:  "there is no token of this name",
			Next:   "`rowfeed token list` shows the existing tokens",
		}
	}
	return n == 1, nil
}
