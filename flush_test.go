package rowfeed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestFlights: a flight serves all who asked before it began, and nobody who asked
// later; one that is not waited for any more flies on for the others.
func TestFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s flights
		flown, land := 0, make(chan error)
		fly := func(context.Context) error { flown++; return <-land }
		answers := make(chan error, 20)
		ask := func(ctx context.Context, n int) {
			for range n {
				go func() { answers <- s.join(ctx, fly) }()
			}
			synctest.Wait()
		}
		impatient, leave := context.WithCancel(t.Context())
		ask(impatient, 1) // takes off at once
		ask(t.Context(), 9)
		if flown != 1 {
			t.Fatalf("%d flights under way", flown)
		}
		leave()
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Fatalf("who left was answered %v", err)
		}
		land <- nil // the first; nobody waits for it
		synctest.Wait()
		if len(answers) != 0 || flown != 2 {
			t.Fatalf("%d late callers were served by a flight that had begun; %d flights", len(answers), flown)
		}
		broken := errors.New("broken")
		ask(t.Context(), 1)
		land <- broken
		for range 9 {
			if err := <-answers; !errors.Is(err, broken) {
				t.Fatalf("answered %v", err)
			}
		}
		land <- nil
		if err := <-answers; err != nil || flown != 3 {
			t.Fatalf("the last was answered %v after %d flights", err, flown)
		}
	})
}
