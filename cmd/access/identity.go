package access

import (
	"context"
	"slices"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Right is what an identity may do with a feed.
type Right = admin.Right

// The rights.
const (
	Read       = admin.RightRead
	Publish    = admin.RightPublish
	Administer = admin.RightAdminister
)

// EveryFeed stands for all feeds, including later ones.
const EveryFeed = admin.EveryFeed

// Grant is one right on one feed or on EveryFeed.
type Grant = admin.TokenGrant

// Identity is the client of a request, with its rights. The zero value has no rights.
type Identity struct {
	// Name is the name of the token, or the name from another authentication. It is empty if the client is unknown.
	Name   string
	Grants []Grant
	// View limits what the client sees of every feed.
	View feedtype.View

	token *held // nil if the identity has no token that could end
}

// Everyone returns the identity of all clients of a server without authentication. It has all rights.
func Everyone() Identity {
	return Identity{Name: "everyone", Grants: []Grant{{Right: Read, Feed: EveryFeed}, {Right: Publish, Feed: EveryFeed},
		{Right: Administer, Feed: EveryFeed}}}
}

// May tells whether the identity has the right on the feed, or on all feeds for EveryFeed.
func (i Identity) May(right Right, feed string) bool {
	return slices.ContainsFunc(i.Grants, func(g Grant) bool {
		return g.Right == right && (g.Feed == EveryFeed || g.Feed == feed && feed != "")
	})
}

type contextKey struct{}

// With returns a context with the identity, for the handlers of the request.
func With(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, who)
}

// From returns the identity in a request's context, or the zero value.
func From(ctx context.Context) Identity {
	who, _ := ctx.Value(contextKey{}).(Identity)
	return who
}
