package rowfeed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

const watchTestPause = 50 * time.Millisecond

// watched counts the looks of a minute in which so many wait and so many publishers sleep. what a
// look answers is said by its number, from 1 on.
func looksInAMinute(t *testing.T, waiting, asleep int, serving bool, what func(n int) (answer, error)) (looks int) {
	synctest.Test(t, func(*testing.T) {
		w := newWatcher(watchTestPause, watchTestPause, func(context.Context, question) (answer, error) {
			looks++
			return what(looks)
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for range waiting {
			go func() {
				for seen := (standing{}); ctx.Err() == nil; {
					if _, _, news := w.wait(ctx, watchKey{feed: "kv"}, seen, false); news != (standing{}) {
						seen = news
					}
				}
			}()
		}
		for range asleep {
			go func() {
				if serving {
					defer w.serve("kv")()
				}
				for ctx.Err() == nil {
					w.sleep(ctx, "kv", w.looked(), nil, time.Hour)
				}
			}()
		}
		<-ctx.Done()
		synctest.Wait()
	})
	return looks
}

// TestLooksInAMinute: in a quiet minute those who wait and those who sleep share 20 looks a second, however many they are; looks
// that bring news come as fast as news, unless it was a publisher of this process that was about to tell;
// and looks that fail become rare.
func TestLooksInAMinute(t *testing.T) {
	quiet := func(int) (answer, error) { return answer{at: map[watchKey]standing{{feed: "kv"}: {}}}, nil }
	news := func(n int) (answer, error) {
		return answer{at: map[watchKey]standing{{feed: "kv"}: {head: dialect.Numbered(int64(n))}}}, nil
	}
	once := func(n int) (a answer, err error) {
		if n == 3 {
			err = errors.New("away")
		}
		return a, err
	}
	failing := func(int) (answer, error) { return answer{}, errors.New("away") }
	for _, c := range []struct {
		name            string
		waiting, asleep int
		serving         bool
		what            func(int) (answer, error)
		least, most     int
	}{
		{"one waits", 1, 0, false, quiet, 1199, 1200},
		{"one sleeps", 0, 1, false, quiet, 1199, 1200},
		{"many wait and sleep", 100, 100, true, quiet, 1199, 1200},
		{"news from elsewhere", 1, 0, false, news, 50_000, 250_000},
		{"news that a publisher here was about to tell", 1, 1, true, news, 1199, 1200},
		{"one that failed, beside publishers alone", 0, 2, false, once, 1150, 1200},
		{"nothing but failures", 1, 1, false, failing, 10, 30},
	} {
		looks := looksInAMinute(t, c.waiting, c.asleep, c.serving, c.what)
		if looks < c.least || looks > c.most {
			t.Errorf("%s: %d looks in a minute, want %d to %d", c.name, looks, c.least, c.most)
		}
	}
}
