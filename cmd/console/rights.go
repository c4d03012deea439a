package console

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
)

// maySee tells whether the identity may see a feed, its consumers and its leases.
func maySee(who access.Identity, feed string) bool {
	return who.May(access.Read, feed) || who.May(access.Administer, feed)
}

// seesAll tells whether the identity sees all rows of the feeds that it may read.
func seesAll(who access.Identity) bool { return len(who.View.Where) == 0 }

// maxRefusals is how many refusals of an actor the audit log records before it limits their rate. Without a limit, any
// token could fill the database.
const maxRefusals = 100

// refusals limits the refusals that the audit log records, by actor. Actors are authenticated, so there are no more of
// them than tokens.
type refusals struct {
	mu sync.Mutex
	of map[string]*rate.Limiter
}

// allow tells whether to record another refusal: the first maxRefusals of an actor, and then one a minute.
func (r *refusals) allow(actor string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[actor] == nil {
		r.of[actor] = rate.NewLimiter(rate.Every(time.Minute), maxRefusals)
	}
	return r.of[actor].Allow()
}

// administersSome tells whether the identity may administer at least one feed.
func administersSome(who access.Identity) bool {
	return slices.ContainsFunc(who.Grants, func(g access.Grant) bool { return g.Right == access.Administer })
}

// administered returns the feeds that the identity may administer, if it may not administer all.
func administered(who access.Identity) (feeds []string) {
	for _, g := range who.Grants {
		if g.Right == access.Administer {
			feeds = append(feeds, g.Feed)
		}
	}
	slices.Sort(feeds)
	return slices.Compact(feeds)
}

// forbidden returns the error of a missing right.
func forbidden(right access.Right, feed string) error {
	object := `feed "` + feed + `"`
	if feed == access.EveryFeed {
		object = "all feeds"
	}
	return &rowfeed.Error{Code: rowfeed.Forbidden, Object: object,
		Cause: "you do not have the right to " + string(right),
		Next:  "ask for a token with this right"}
}

// feedLease matches the leases of publishers, relays and consumers, and captures the feed. Leases of an application
// belong to no feed.
var feedLease = regexp.MustCompile(`^(?:publish:([a-z][a-z0-9_]*)|(?:relay|consumer):([a-z][a-z0-9_]*):.*)$`)

// leaseFeed returns the feed that a right on a lease is needed for.
func leaseFeed(name string) string {
	found := feedLease.FindStringSubmatch(name)
	if found == nil {
		return access.EveryFeed
	}
	return found[1] + found[2]
}

// process returns host/pid of a lease's owner.
func process(owner string) string {
	parts := strings.SplitN(owner, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}
