package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestLeaseIsListedAndReleased: an operator lists leases, sees which process publishes, and releases a lease.
func TestLeaseIsListedAndReleased(t *testing.T) {
	s := withFeed(t)
	s.prints("lease list", "there are no leases; a publisher acquires one for its feed\n")
	s.prints("lease list --json", "[]\n")
	never := `lease "publish:kv": it was never acquired`
	if got := s.fails(cli.ExitFailed, "lease release publish:kv"); !strings.Contains(got, never) {
		t.Errorf("release of none: %s", got)
	}
	a, errs := quietApp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, a, "publish") }()
	var list []struct {
		Name, State, Owner string
		Epoch              int64
		ExpiresInSeconds   float64 `json:"expires_in_seconds"`
	}
	for len(list) == 0 {
		if ctx.Err() != nil {
			t.Fatal("no publisher has acquired the lease")
		}
		s.decode(s.ok("lease list --json"), &list)
	}
	l := list[0]
	if l.Name != "publish:kv" || l.State != "held" || l.Epoch != 1 || l.ExpiresInSeconds <= 0 ||
		strings.Count(l.Owner, "/") != 2 {
		t.Errorf("lease list --json: %+v", l)
	}
	holder := hostAndPID(l.Owner)
	if out := s.ok("lease list"); !strings.Contains(out, "publish:kv") || !strings.Contains(out, holder+" ") ||
		strings.Contains(out, l.Owner) {
		t.Errorf("lease list: %s", out)
	}
	if out := s.ok("status kv"); !strings.Contains(out, "kv: published by "+holder+" since ") {
		t.Errorf("status: %s", out)
	}
	var status struct{ Publisher json.RawMessage }
	s.decode(s.ok("status kv --json"), &status)
	if !strings.Contains(string(status.Publisher), l.Owner) {
		t.Errorf("status --json: %s", status.Publisher)
	}
	s.prints("publish --once", "kv: 0 keys published, head 3.9k3f2c7adq\n") // without the lease
	if got := s.fails(cli.ExitFailed,
		"lease release publish:kv --epoch 7"); !strings.Contains(got, "its epoch is 1, not 7") {
		t.Errorf("release of another epoch: %s", got)
	}
	s.fails(cli.ExitUsage, "lease release publish:kv --epoch 0")
	if out := s.ok("lease release publish:kv --epoch 1"); !strings.HasPrefix(out,
		"publish:kv: released; "+holder+" had it since ") {
		t.Errorf("release: %s", out)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("publish ended with %v", err)
	}
	s.ok("lease release publish:kv") // the publisher may have acquired it again
	s.prints("lease release publish:kv", "publish:kv: is free already, nothing changed\n")
	s.decode(s.ok("status kv --json"), &status)
	if string(status.Publisher) != "null" {
		t.Errorf("status --json without a publisher: %s", status.Publisher)
	}
	if log := errs.String(); !strings.Contains(log, "this process publishes the feed") {
		t.Errorf("the log does not say that this process publishes: %s", log)
	}
}

// hostAndPID returns the part of a lease's owner that commands show.
func hostAndPID(owner string) string {
	parts := strings.Split(owner, "/")
	return parts[0] + "/" + parts[1]
}
