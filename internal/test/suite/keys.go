package suite

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed"
)

// WantUnfit asserts that check, upgrade and the publisher say why feed add would refuse the table, and what to do.
func (x *Env) WantUnfit(f *rowfeed.Feed, says, next string) {
	x.Helper()
	told := func(who, text string) {
		x.Helper()
		for _, part := range []string{"has become one that `rowfeed feed add` would refuse", says, next,
			"rowfeed feed drop"} {
			if !strings.Contains(text, part) {
				x.Errorf("%s: %q does not say %q", who, text, part)
			}
		}
	}
	problems, err := f.Admin().Verify(x.Ctx)
	told("verify", fmt.Sprint(strings.Join(problems, "; "), err))
	_, err = f.Admin().Upgrade(x.Ctx)
	told("upgrade", fmt.Sprint(err))
	findings, err := f.Admin().Check(x.Ctx)
	var all []string
	for _, finding := range findings {
		all = append(all, finding.Problem)
	}
	told("check", fmt.Sprint(strings.Join(all, "; "), err))
	status, err := f.Admin().Status(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	told("status", strings.Join(status.Problems, "; "))
	if x.Failed() {
		return // readiness asks as verify does, and would be waited for in vain
	}
	x.publisherSays(f, func(text string) bool { return strings.Contains(text, says) })
}

// publisherSays runs a publisher until readiness says something of the feed. What waits it may have published by then.
func (x *Env) publisherSays(f *rowfeed.Feed, what func(string) bool) {
	x.Helper()
	ctx, cancel := context.WithCancel(x.Ctx)
	done := make(chan error, 1)
	go func() { done <- f.RunPublisher(ctx) }()
	x.Eventually("readiness says what is wrong", func() bool { return what(strings.Join(f.Problems(), "; ")) })
	cancel()
	if err := <-done; err != nil {
		x.Error(err)
	}
}
