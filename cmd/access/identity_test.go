package access

import (
	"context"
	"testing"
)

func TestGrantsCoverRightAndFeed(t *testing.T) {
	one := Identity{Name: "a", Grants: []Grant{{Right: Read, Feed: "kv"}, {Right: Administer, Feed: EveryFeed}}}
	for _, c := range []struct {
		who   Identity
		right Right
		feed  string
		may   bool
	}{
		{one, Read, "kv", true},
		{one, Read, "kv2", false},
		{one, Read, EveryFeed, false},
		{one, Publish, "kv", false},
		{one, Administer, "other", true},
		{one, Administer, EveryFeed, true},
		{one, Read, "", false},
		{Identity{}, Read, "kv", false},
		{Identity{Grants: []Grant{{Right: Read}}}, Read, "", false},
		{Everyone(), Publish, "kv", true},
	} {
		if got := c.who.May(c.right, c.feed); got != c.may {
			t.Errorf("%q may %s %q: %v", c.who.Name, c.right, c.feed, got)
		}
	}
}

func TestContextWithoutIdentityHasNoRights(t *testing.T) {
	if who := From(context.Background()); who.Name != "" || who.May(Read, "kv") {
		t.Errorf("nobody is %+v", who)
	}
	if who := From(With(context.Background(), Everyone())); !who.May(Read, "kv") {
		t.Errorf("everyone became %+v", who)
	}
}
