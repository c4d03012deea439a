package protocoltest

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// Run runs the checks. It returns an error if the server cannot be reached, or does not have the feed.
func Run(ctx context.Context, o Options) ([]Result, error) {
	client := newClient(o)
	defer client.http.CloseIdleConnections()
	f, err := newFeed(ctx, client, o)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, c := range checks() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, c.number) {
			continue
		}
		r := Result{Check: c.number, Level: c.level(), Sentence: c.sentence, Result: Passed}
		for range cmp.Or(o.Tries, defaultTries) {
			if err = c.test(ctx, f); err == nil {
				break
			}
		}
		var nothing untried
		switch {
		case ctx.Err() != nil:
			return results, ctx.Err()
		case errors.As(err, &nothing):
			r.Result, r.Detail = Untried, string(nothing)
		case err != nil && r.Level == "SHOULD":
			r.Result, r.Detail = Differs, err.Error()
		case err != nil:
			r.Result, r.Detail = Failed, err.Error()
		}
		results = append(results, r)
	}
	return results, nil
}

// checks returns all checks, in the order of the protocol.
func checks() []check {
	return slices.Concat(listingChecks(), pageChecks(), cursorChecks(), shardChecks(), waitChecks(), streamChecks(),
		problemChecks(), formatChecks(), cachingChecks(), compressionChecks())
}
