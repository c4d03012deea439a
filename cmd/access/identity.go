package access

import (
	"context"
	"slices"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Right is what somebody may do with a feed.
type Right = admin.Right

// The rights.
const (
	Read       = admin.RightRead
	Publish    = admin.RightPublish
	Administer = admin.RightAdminister
)

// EveryFeed stands for all feeds, also those of later.
const EveryFeed = admin.EveryFeed

// Grant is one right, on one feed or on EveryFeed.
type Grant = admin.TokenGrant

// Identity is who sends a request, and what they may do. The zero value may do nothing.
type Identity struct {
	// Name is the token's, or of whatever else has told who it is; "" is nobody.
	Name   string
	Grants []Grant
	// View narrows what is read of every feed.
	View feedtype.View

	token *held // nil: there is none that could end
}

// Everyone may do everything: who sends requests where nobody is asked who they are.
func Everyone() Identity {
	return Identity{Name: "everyone", Grants: []Grant{{Right: Read, Feed: EveryFeed}, {Right: Publish, Feed: EveryFeed},
		{Right: Administer, Feed: EveryFeed}}}
}

// May tells whether the identity has the right on the feed; on EveryFeed it must have it
// on all of them.
func (i Identity) May(right Right, feed string) bool {
	return slices.ContainsFunc(i.Grants, func(g Grant) bool {
		return g.Right == right && (g.Feed == EveryFeed || g.Feed == feed && feed != "")
	})
}

type contextKey struct{}

// With hands the identity on to what serves the request.
func With(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, who)
}

// From is who sends the request that ctx is of: nobody, where none was told.
func From(ctx context.Context) Identity {
	who, _ := ctx.Value(contextKey{}).(Identity)
	return who
}
