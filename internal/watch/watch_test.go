package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

const watchTestPause = 50 * time.Millisecond

// pollsInAMinute counts the polls of a minute with some waiting readers and sleeping publishers. The function what
// answers poll n, from 1 on.
func pollsInAMinute(t *testing.T, waiting, asleep int, serving bool,
	what func(n int) (answer, error),
) (polls int) {
	synctest.Test(t, func(*testing.T) {
		w := New(watchTestPause, watchTestPause, func(context.Context, Question) (answer, error) {
			polls++
			return what(polls)
		}, noPages)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for range waiting {
			go func() {
				for seen := (Watermark{}); ctx.Err() == nil; {
					if _, _, news := w.Wait(ctx, Key{Feed: "kv"}, seen, false); news != (Watermark{}) {
						seen = news
					}
				}
			}()
		}
		for range asleep {
			go func() {
				if serving {
					defer w.Serve("kv")()
				}
				for ctx.Err() == nil {
					w.Sleep(ctx, "kv", w.Polls(), nil, time.Hour)
				}
			}()
		}
		<-ctx.Done()
		synctest.Wait()
	})
	return polls
}

// TestPollsInAMinute: in a quiet minute all waiting readers and sleeping publishers share 20 polls a second. Polls that
// find news come as fast as the news, unless a publisher of this process was about to report it. Failing polls are
// rare.
func TestPollsInAMinute(t *testing.T) {
	quiet := func(int) (answer, error) { return answer{At: map[Key]Watermark{{Feed: "kv"}: {}}}, nil }
	news := func(n int) (answer, error) {
		return answer{At: map[Key]Watermark{{Feed: "kv"}: {Head: feedtype.Numbered(int64(n))}}}, nil
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
		{"news that a publisher here was about to report", 1, 1, true, news, 1199, 1200},
		{"one poll fails, with publishers only", 0, 2, false, once, 1150, 1200},
		{"nothing but failures", 1, 1, false, failing, 10, 30},
	} {
		polls := pollsInAMinute(t, c.waiting, c.asleep, c.serving, c.what)
		if polls < c.least || polls > c.most {
			t.Errorf("%s: %d polls in a minute, want %d to %d", c.name, polls, c.least, c.most)
		}
	}
}

// TestSleepEndsOnWakeUpChangeFailureOrTimeout: a publisher sleeps until it is woken, a poll finds a change or fails,
// its time is over, or ctx ends. It does not sleep if a poll has found something since the publisher looked.
func TestSleepEndsOnWakeUpChangeFailureOrTimeout(t *testing.T) {
	finds := func(a answer) (answer, error) { return a, nil }
	for _, c := range []struct {
		name  string
		begin func(w *Watcher, wake chan struct{}, end func())
		third func() (answer, error) // what the third poll finds
		want  time.Duration
	}{
		{"when its time is over", nil, nil, time.Minute},
		{"when it is woken", func(_ *Watcher, wake chan struct{}, _ func()) {
			wake <- struct{}{}
		}, nil, 0},
		{"with its context", func(_ *Watcher, _ chan struct{}, end func()) {
			time.AfterFunc(time.Second, end)
		}, nil, time.Second},
		{"by a change", nil, func() (answer, error) {
			return finds(answer{changed: map[string]bool{"kv": true}})
		}, 3 * watchTestPause},
		{"not by another feed's", nil, func() (answer, error) {
			return finds(answer{changed: map[string]bool{"other": true}})
		}, time.Minute},
		{"by a commit", nil, func() (answer, error) { return finds(answer{committed: true}) }, 3 * watchTestPause},
		{"by a failure", nil, func() (answer, error) { return answer{}, errors.New("away") }, 3 * watchTestPause},
		{"before it begins", func(w *Watcher, _ chan struct{}, _ func()) { w.ended, w.lastChange = 1, 1 }, nil, 0},
		{"asking itself, while polls fail", func(w *Watcher, _ chan struct{}, _ func()) {
			w.outage = time.Second
		}, nil, watchTestPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			polls := 0
			w := New(watchTestPause, watchTestPause, func(context.Context, Question) (answer, error) {
				if polls++; polls == 3 && c.third != nil {
					return c.third()
				}
				return answer{}, nil
			}, noPages)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			wake, since := make(chan struct{}, 1), w.Polls()
			if c.begin != nil {
				c.begin(w, wake, end)
			}
			began := time.Now()
			w.Sleep(ctx, "kv", since, wake, time.Minute)
			if slept := time.Since(began); slept != c.want || len(w.sleepers) > 0 {
				t.Errorf("it wakes %s: after %s, want %s; %d asleep", c.name, slept, c.want, len(w.sleepers))
			}
		})
	}
}

func noPages() any { return nil }
