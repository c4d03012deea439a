package suite

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed"
)

// WantUnfit asserts that verify, upgrade, check, status and the publisher say why feed add would refuse the table, and
// what to do.
func (x *Env) WantUnfit(f *rowfeed.Feed, says, next string) {
	x.Helper()
	wantParts := func(command, text string) {
		x.Helper()
		for _, part := range []string{
			"has become one that `rowfeed feed add` would refuse", says, next, "rowfeed feed drop",
		} {
			if !strings.Contains(text, part) {
				x.Errorf("%s: %q does not contain %q", command, text, part)
			}
		}
	}
	problems, err := f.Admin().Verify(x.Ctx)
	wantParts("verify", fmt.Sprint(strings.Join(problems, "; "), err))
	_, err = f.Admin().Upgrade(x.Ctx)
	wantParts("upgrade", fmt.Sprint(err))
	findings, err := f.Admin().Check(x.Ctx)
	var all []string
	for _, finding := range findings {
		all = append(all, finding.Problem)
	}
	wantParts("check", fmt.Sprint(strings.Join(all, "; "), err))
	status, err := f.Admin().Status(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	wantParts("status", strings.Join(status.Problems, "; "))
	if x.Failed() {
		return // readiness has the problems of verify, so that it would never have this one
	}
	x.PublisherSays(f, says)
}

// PublisherSays runs a publisher until the feed has the problem. The publisher may publish changes meanwhile.
func (x *Env) PublisherSays(f *rowfeed.Feed, problem string) {
	x.Helper()
	ctx, cancel := context.WithCancel(x.Ctx)
	done := make(chan error, 1)
	go func() { done <- f.RunPublisher(ctx) }()
	x.Eventually("the feed has the problem", func() bool {
		return strings.Contains(strings.Join(f.Problems(), "; "), problem)
	})
	cancel()
	if err := <-done; err != nil {
		x.Error(err)
	}
}
