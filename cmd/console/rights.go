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

// maySee tells whether a feed, with its consumers and leases, is shown.
func maySee(who access.Identity, feed string) bool {
	return who.May(access.Read, feed) || who.May(access.Administer, feed)
}

// seesAll tells whether no row is hidden from the identity, of the feeds that it may read.
func seesAll(who access.Identity) bool { return len(who.View.Where) == 0 }

// maxRefusals bounds how many refusals of one actor are in the audit log: whoever has any token could
// fill the database with them. The first of them say enough.
const maxRefusals = 100

// refusals count what each actor was refused, whom authentication knows: they are as many as
// there are tokens.
type refusals struct {
	mu sync.Mutex
	of map[string]*rate.Limiter
}

// allow tells whether another refusal goes into the log: one a minute does, beyond the first.
func (r *refusals) allow(actor string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[actor] == nil {
		r.of[actor] = rate.NewLimiter(rate.Every(time.Minute), maxRefusals)
	}
	return r.of[actor].Allow()
}

// administersSome tells whether there is a feed that is administered, so that pages for it
// are worth a link.
func administersSome(who access.Identity) bool {
	return slices.ContainsFunc(who.Grants, func(g access.Grant) bool { return g.Right == access.Administer })
}

// forbidden says which right is missing.
func forbidden(right access.Right, feed string) error {
	object := `feed "` + feed + `"`
	if feed == access.EveryFeed {
		object = "all feeds"
	}
	return &rowfeed.Error{Code: rowfeed.Forbidden, Object: object, Cause: "you have not the right to " + string(right),
		Next: "ask for a token with this right"}
}

// feedLease finds the feed in the name of a lease that is a publisher's, a relay's or a
// consumer's; a program's own is of no one feed.
var feedLease = regexp.MustCompile(`^(?:publish:([a-z][a-z0-9_]*)|(?:relay|consumer):([a-z][a-z0-9_]*):.*)$`)

// leaseFeed is the feed on which the right to a lease is asked for.
func leaseFeed(name string) string {
	found := feedLease.FindStringSubmatch(name)
	if found == nil {
		return access.EveryFeed
	}
	return found[1] + found[2]
}

// process is the part of a lease's owner that tells people where to look: host/pid.
func process(owner string) string {
	parts := strings.SplitN(owner, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}
