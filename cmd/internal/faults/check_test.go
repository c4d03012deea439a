package faults

import (
	"slices"
	"strings"
	"testing"
)

// rightLog has two shards (keys by their parity), keys 1 to 4. Key 1 is changed, 2 deleted, 3 deleted and inserted
// again. 4 was deleted before a publisher saw the delete, which arrived twice: first at the position of an earlier
// version. a has the first claims, then b takes over. a was paused, and then sends its batch. A request of b was cut
// and read late. Key 5 was deleted and inserted again before either was published: a page has it only when it is
// fetched again.
func rightLog() []Arrival {
	return []Arrival{
		{Key: 1, Version: 1, Position: 1, Shard: 1, Epoch: 1, Sender: "a", Answer: Accepted},
		{Key: 2, Version: 1, Position: 2, Shard: 0, Epoch: 1, Sender: "a", Answer: Busy},
		{Key: 2, Version: 1, Position: 2, Shard: 0, Epoch: 1, Sender: "a", Answer: Accepted},
		{Key: 3, Version: 1, Position: 3, Shard: 1, Epoch: 1, Sender: "a", Answer: Accepted},
		{Key: 1, Version: 2, Position: 4, Shard: 1, Epoch: 2, Sender: "b", Answer: Accepted},
		{Key: 1, Version: 1, Position: 1, Shard: 1, Epoch: 1, Sender: "a", Answer: Superseded},
		{Key: 2, Delete: true, Position: 5, Shard: 0, Epoch: 2, Sender: "b", Answer: Accepted},
		{Key: 3, Delete: true, Position: 6, Shard: 1, Epoch: 2, Sender: "b", Answer: Accepted},
		{Key: 1, Version: 2, Position: 4, Shard: 1, Epoch: 2, Sender: "b", Answer: Repeated},
		{Key: 3, Version: 4, Position: 7, Shard: 1, Epoch: 2, Sender: "b", Answer: Accepted},
		{Key: 3, Delete: true, Position: 6, Shard: 1, Epoch: 2, Sender: "b", Answer: Repeated, Fate: GivenUp},
		{Key: 4, Delete: true, Position: 8, Shard: 0, Epoch: 2, Sender: "b", Answer: Accepted},
		{Key: 4, Delete: true, Position: 9, Shard: 0, Epoch: 2, Sender: "b", Answer: Accepted},
		{Key: 5, Version: 3, Position: 0, Shard: 0, Epoch: 2, Sender: "b", Answer: Busy},
	}
}

var (
	rightHistory = History{
		1: {{Version: 1}, {Version: 2}},
		2: {{Version: 1}, {Version: 2, Delete: true}},
		3: {{Version: 1}, {Version: 2, Delete: true}, {Version: 3}, {Version: 4}},
		4: {{Version: 1}, {Version: 2, Delete: true}},
		5: {{Version: 1}, {Version: 2, Delete: true}, {Version: 3}},
	}
	rightFinal = map[int64]int64{1: 2, 3: 4}
)

func same(shard int) int { return shard }

func TestRightLogHasNoFault(t *testing.T) {
	v := Check(rightLog(), same, rightHistory, rightFinal)
	if len(v.Faults) > 0 || v.Arrivals != 14 || v.Taken != 9 || v.Repeated != 2 || v.Superseded != 1 || v.Busy != 2 ||
		v.GivenUp != 1 || v.Epochs != 4 {
		t.Errorf("%+v", v)
	}
}

// TestEveryFaultIsFound: every log with an error gets its fault.
func TestEveryFaultIsFound(t *testing.T) {
	without := func(i int) func([]Arrival) []Arrival {
		return func(log []Arrival) []Arrival { return slices.Delete(log, i, i+1) }
	}
	change := func(i int, f func(*Arrival)) func([]Arrival) []Arrival {
		return func(log []Arrival) []Arrival { f(&log[i]); return log }
	}
	add := func(a Arrival) func([]Arrival) []Arrival {
		return func(log []Arrival) []Arrival { return append(log, a) }
	}
	for name, c := range map[string]struct {
		spoil func([]Arrival) []Arrival
		want  []string
	}{
		"lost: a key's last entry": {without(4), []string{
			"order: arrival 7: within epoch 2 of shard 1 position 4 arrived after 6",
			"stale: key 1 last arrived as version 1",
		}},
		"lost: a delete": {without(6), []string{"ghost: key 2 last arrived as version 1"}},
		"lost: all arrivals of a key": {func([]Arrival) []Arrival {
			return nil
		}, []string{"lost: key 1 never", "lost: key 3 never"}},
		"lost: the row that was inserted again": {without(9), []string{"lost: key 3 last arrived as deleted"}},
		"lost: not accepted": {change(4, func(a *Arrival) { a.Answer = Busy }),
			[]string{"stale: key 1 last arrived as version 1"}},
		"swapped: two versions of a key": {func(l []Arrival) []Arrival { l[7], l[9] = l[9], l[7]; return l }, []string{
			"order: arrival 9: within epoch 2 key 3", "order: arrival 9: key 3 was accepted at position 6 after 7",
			"order: arrival 9: key 3 arrived as deleted", "lost: key 3",
		}},
		"swapped: versions at right positions": {func(l []Arrival) []Arrival {
			l[0].Version, l[4].Version = 2, 1
			return l
		}, []string{"order: arrival 4: version 1 of key 1 arrived after 2", "stale: key 1"}},
		"swapped: two of one claim": {func(l []Arrival) []Arrival { l[0], l[3] = l[3], l[0]; return l },
			[]string{"order: arrival 3: within epoch 1 of shard 1 position 1 arrived after 3"}},
		"stale: an earlier claim is accepted": {change(5, func(a *Arrival) { a.Answer = Accepted }), []string{
			"epoch: arrival 5: key 1 was accepted from epoch 1 after one of epoch 2",
			"order: arrival 5: key 1 was accepted at position 1 after 4",
			"order: arrival 5: version 1 of key 1 arrived after 2", "stale: key 1",
		}},
		"stale: a sender that still waits": {change(10, func(a *Arrival) { a.Fate = Awaited }),
			[]string{"order: arrival 10: within epoch 2 key 3 arrived at position 6 after 7"}},
		"stale: an old version at the end": {
			add(Arrival{Key: 1, Version: 1, Position: 10, Shard: 1, Epoch: 2, Sender: "b", Answer: Accepted}),
			[]string{"order: arrival 14: version 1 of key 1 arrived after 2", "stale: key 1"},
		},
		"swapped: again and again": {func(l []Arrival) []Arrival {
			l[10].Fate = Unknown
			return append(l, l[10], l[10], l[10])
		}, []string{"order: arrival 16: within epoch 2 of shard 1 position 6 arrived after a later one 4 times"}},
		"a claim of two processes": {change(8, func(a *Arrival) { a.Sender = "c" }),
			[]string{"epoch: arrival 8: epoch 2 of shard 1 belongs to b and to c"}},
		"a version that was rolled back": {
			add(Arrival{Key: 1, Version: 3, Position: 10, Shard: 1, Epoch: 2, Sender: "b", Answer: Accepted}),
			[]string{"invented: arrival 14: key 1 has no version 3", "stale: key 1"},
		},
		"a deletion that was none": {
			add(Arrival{Key: 1, Delete: true, Position: 10, Shard: 1, Epoch: 2, Sender: "b", Answer: Accepted}),
			[]string{"order: arrival 14: key 1 arrived as deleted", "lost: key 1 last arrived as deleted"},
		},
		"accepted twice": {change(8, func(a *Arrival) { a.Answer = Accepted }),
			[]string{"order: arrival 8: key 1 was accepted at position 4 after 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := Check(c.spoil(rightLog()), same, rightHistory, rightFinal)
			if len(v.Faults) != len(c.want) {
				t.Fatalf("faults:\n%s\nwant %q", strings.Join(v.Faults, "\n"), c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(v.Faults[i], want) {
					t.Errorf("fault %q, want %q", v.Faults[i], want)
				}
			}
		})
	}
}
