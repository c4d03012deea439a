package access

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed"
)

// holding returns a context that ends with the validity of the identity's token. Call leave afterwards. One query
// checks all tokens that requests wait with, hundreds at a time, whatever the number of requests.
func (i Identity) holding(ctx context.Context) (_ context.Context, leave func(), err error) {
	h := i.token
	if h == nil {
		return ctx, func() {}, nil
	}
	if err := h.check(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })
	h.of.enter(h)
	return ctx, func() {
		stop()
		cancel(nil)
		h.of.leave(h)
	}, nil
}

// ended returns why the token has ended, if that is the reason why ctx has ended. ctx is a context from holding.
func (i Identity) ended(ctx context.Context) error {
	if i.token == nil || i.token.life.Err() == nil || ctx.Err() == nil {
		return nil
	}
	return context.Cause(i.token.life)
}

func (t *Tokens) enter(h *held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[h]++; len(t.waiting) == 1 && t.waiting[h] == 1 {
		var ctx context.Context
		ctx, t.rest = context.WithCancel(context.Background())
		go t.watch(ctx)
	}
}

func (t *Tokens) leave(h *held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[h]--; t.waiting[h] > 0 {
		return
	}
	if delete(t.waiting, h); len(t.waiting) == 0 {
		t.rest()
	}
}

// watch checks regularly which of the tokens that requests wait with are still valid.
func (t *Tokens) watch(ctx context.Context) {
	tick := time.NewTicker(t.trust())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.mu.Lock()
		var some []*held
		for h := range t.waiting {
			if h.life.Err() == nil {
				some = append(some, h)
			}
		}
		t.mu.Unlock()
		bounded, cancel := context.WithTimeout(ctx, askingTimeout)
		err := t.confirm(bounded, some)
		cancel()
		if err == nil || ctx.Err() != nil {
			continue
		}
		for _, h := range some {
			if !h.knownValid(patience) {
				t.forget(h, &rowfeed.Error{Code: rowfeed.Unavailable,
					Cause: "the database cannot be asked whether the token is still valid",
					Next:  "try again", Err: err})
			}
		}
	}
}

// forbidden returns the error for a client without the right.
func forbidden(who Identity, right Right, object string) error {
	if who.Name == "" {
		return ErrNobody
	}
	return &rowfeed.Error{Code: rowfeed.Forbidden, Object: object,
		Cause: "the token " + who.Name + " does not have the right to " + string(right),
		Next:  "ask for a token that has it: `rowfeed token add NAME --feed FEED --right " + string(right) + "`"}
}
