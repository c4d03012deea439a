package store

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// TestCallServesOnlyEarlierCallers: a call serves the callers that came before it began, and no later ones. It
// continues if its first caller has left.
func TestCallServesOnlyEarlierCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sharing[string, int]
		began, ended, end := 0, 0, make(chan error)
		find := func(context.Context) (int, error) {
			began++
			err := <-end
			ended++
			return ended, err
		}
		type answer struct {
			n   int
			err error
		}
		answers := make(chan answer, 20)
		ask := func(ctx context.Context, n int) {
			for range n {
				go func() { n, err := s.Do(ctx, "page", find); answers <- answer{n, err} }()
			}
			synctest.Wait()
		}
		impatient, leave := context.WithCancel(t.Context())
		ask(impatient, 1) // begins at once
		ask(t.Context(), 9)
		if began != 1 {
			t.Fatalf("%d under way", began)
		}
		leave()
		if a := <-answers; !errors.Is(a.err, context.Canceled) {
			t.Fatalf("the caller that left was answered %v", a)
		}
		end <- nil // the first call, which has no caller left
		synctest.Wait()
		if len(answers) != 0 || began != 2 {
			t.Fatalf("%d late callers were answered with what had begun before; %d began", len(answers), began)
		}
		broken := errors.New("broken")
		ask(t.Context(), 1)
		end <- broken
		for range 9 {
			if a := <-answers; !errors.Is(a.err, broken) || a.n != 2 {
				t.Fatalf("answered %v", a)
			}
		}
		end <- nil
		if a := <-answers; a != (answer{3, nil}) || began != 3 {
			t.Fatalf("the last was answered %v after %d", a, began)
		}
		synctest.Wait()
		if len(s.calls) != 0 {
			t.Errorf("%d calls are left without callers", len(s.calls))
		}
	})
}

// TestKeptAnswerServesLaterCallers: with Keep one answer serves all callers, also those that come after it. A call that
// all its callers have left is canceled and not kept.
func TestKeptAnswerServesLaterCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Sharing[string, int]{Keep: true}
		found := 0
		find := func(ctx context.Context) (int, error) {
			found++
			n := found
			if n == 1 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return n, nil
		}
		impatient, leave := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { _, err := s.Do(impatient, "page", find); first <- err }()
		synctest.Wait()
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for range 3 {
			if n, err := s.Do(t.Context(), "page", find); n != 2 || err != nil {
				t.Fatalf("answered %d, %v", n, err)
			}
		}
		if n, err := s.Do(t.Context(), "another", find); n != 3 || err != nil {
			t.Fatalf("answered %d, %v", n, err)
		}
	})
}

// TestPanicReachesAllCallersOfSharedCall: a call that panics, or ends its goroutine, returns an error to all its
// callers. Later callers get a new call.
func TestPanicReachesAllCallersOfSharedCall(t *testing.T) {
	failures := map[string]func(){
		"panic: broken\n":   func() { panic("broken") },
		"without an answer": runtime.Goexit,
	}
	for want, fail := range failures {
		synctest.Test(t, func(t *testing.T) {
			var s Sharing[string, int]
			began, end := 0, make(chan struct{})
			find := func(context.Context) (int, error) {
				began++
				if <-end; began == 1 {
					fail()
				}
				return began, nil
			}
			type answer struct {
				n   int
				err error
			}
			answers := make(chan answer, 4)
			for range 4 {
				go func() { n, err := s.Do(t.Context(), "page", find); answers <- answer{n, err} }()
				synctest.Wait()
			}
			end <- struct{}{}
			if a := <-answers; a.err == nil || !strings.Contains(a.err.Error(), want) {
				t.Errorf("answered %v, want %q", a, want)
			}
			end <- struct{}{}
			for range 3 {
				if a := <-answers; a != (answer{2, nil}) {
					t.Errorf("the next were answered %v", a)
				}
			}
			synctest.Wait()
			if len(s.calls) != 0 {
				t.Errorf("%d calls are left without callers", len(s.calls))
			}
		})
	}
}
