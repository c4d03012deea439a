package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
)

// killOne kills an instance that is not paused, and starts it again.
func (c *campaign) killOne(rng *rand.Rand) {
	c.Helper()
	for _, i := range rng.Perm(instances) {
		if in := c.relays[i]; in.held.TryLock() {
			c.takeOvers.gone(in.pid(), false)
			in.child.Kill()
			c.kills.Add(1)
			in.start()
			in.held.Unlock()
			return
		}
	}
}

// reviveAll starts the instances that have ended.
func (c *campaign) reviveAll() {
	c.Helper()
	for _, in := range c.relays {
		if in.held.TryLock() { // a paused instance lives
			in.revive()
			in.held.Unlock()
		}
	}
}

// pauseOthers stops one instance after the other for longer than its lease.
func (c *campaign) pauseOthers(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, upTo(rng, c.lease))
		in := c.relays[rng.IntN(instances)]
		longer := c.lease + upTo(rng, c.lease)
		if !in.held.TryLock() {
			continue
		}
		pid := in.pid()
		in.signal(syscall.SIGSTOP)
		c.takeOvers.gone(pid, true)
		pause(ctx, longer)
		c.takeOvers.back(pid)
		in.signal(syscall.SIGCONT)
		in.held.Unlock()
		c.pauses.Add(1)
	}
}

// cutConnections disturbs the connections of one instance after the other. Some delays are as long as a lease.
func (c *campaign) cutConnections(ctx context.Context, rng *rand.Rand, to func(*instance) *toxiproxy.Proxy) {
	for ctx.Err() == nil {
		pause(ctx, upTo(rng, 500*time.Millisecond))
		in := c.relays[rng.IntN(instances)]
		stream := []string{"upstream", "downstream"}[rng.IntN(2)]
		attributes, longest := map[string]int{}, 1500*time.Millisecond
		kind := []string{"reset_peer", "timeout", "latency", "limit_data"}[rng.IntN(4)]
		switch kind {
		case "reset_peer", "timeout": // a timeout of 0 stalls everything until it is removed
			attributes["timeout"] = rng.IntN(3) * rng.IntN(300)
		case "latency":
			attributes["latency"], attributes["jitter"] = rng.IntN(800), rng.IntN(200)
			if rng.IntN(2) == 0 { // what was sent arrives after another instance has taken over
				stream, longest = "upstream", 2*c.lease
				attributes["latency"] = int((c.lease + upTo(rng, c.lease)).Milliseconds())
			}
		case "limit_data":
			attributes["bytes"] = rng.IntN(20_000)
		}
		var list []string
		for name, value := range attributes {
			list = append(list, fmt.Sprintf("%q:%d", name, value))
		}
		toxic := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{%s}}`, kind, stream, strings.Join(list, ","))
		bounded, cancel := context.WithTimeout(ctx, 100*time.Millisecond+upTo(rng, longest))
		err := poison(bounded, to(in), toxic)
		cancel()
		if err != nil {
			c.Error(err)
		}
		c.cuts.Add(1)
	}
}

// varyAnswers makes the receiver refuse requests, or delay them.
func (c *campaign) varyAnswers(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		switch rng.IntN(6) {
		case 0:
			c.inbox.SetMood(func() (bool, time.Duration) { return true, 0 })
		case 1:
			c.inbox.SetMood(func() (bool, time.Duration) { return false, rand.N(c.lease / 4) })
		case 2: // some requests are processed after their sender's claim is over
			c.inbox.SetMood(func() (bool, time.Duration) { return false, rand.N(2 * c.lease) })
		default:
			c.inbox.SetMood(nil)
		}
		pause(ctx, 300*time.Millisecond+upTo(rng, time.Second))
	}
}

// restartDatabase kills the database's server, and starts it again on its data and port.
func (c *campaign) restartDatabase(rng *rand.Rand) {
	c.Helper()
	c.takeOvers.databaseGone()
	c.db.Server().Kill(c)
	pause(context.Background(), upTo(rng, time.Second))
	c.takeOvers.databaseGone()
	c.db.Server().Start(c)
	c.db.Reconnect()
	c.restarts.Add(1)
}
