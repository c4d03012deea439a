package cli

import (
	"strings"
	"sync"
	"time"
)

// bundleEvery is how often a repeated message is logged.
const bundleEvery = time.Minute

// bundle decides which of repeated messages are logged: the first at once, then at the end of each minute the latest,
// with the number of those in between. The zero value is ready for use.
type bundle struct {
	mu    sync.Mutex
	known map[string]*bundled
}

// maxBundled is how many messages a bundle knows before it forgets all.
const maxBundled = 1000

// bundled is what a bundle knows of one message.
type bundled struct {
	loggedAt time.Time
	omitted  int               // since then
	open     bool              // logged since the end was last logged
	latest   func(omitted int) // logs the latest omitted message; nil if no message waits for the end of the minute
	timer    *time.Timer       // ends the minute
}

// add calls log with the number of omitted messages, now or at the end of the minute, unless a later message with the
// same key comes before.
func (b *bundle) add(key string, log func(omitted int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.known[key]
	if m == nil {
		if len(b.known)%maxBundled == 0 { // texts of errors may vary without end
			b.forget()
		}
		m = &bundled{}
		b.known[key] = m
	}
	wait := bundleEvery - time.Since(m.loggedAt)
	if wait <= 0 {
		m.log(log)
		return
	}
	m.omitted++
	if m.latest == nil {
		m.timer = time.AfterFunc(wait, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if m.latest != nil {
				m.omitted--
				m.log(m.latest)
			}
		})
	}
	m.latest = log
}

func (m *bundled) log(log func(omitted int)) {
	m.stop()
	log(m.omitted)
	m.loggedAt, m.omitted, m.open = time.Now(), 0, true
}

func (m *bundled) stop() {
	if m.timer != nil {
		m.timer.Stop()
	}
	m.timer, m.latest = nil, nil
}

// over tells whether to log that the messages whose keys begin with prefix have ended: once for those that were logged.
func (b *bundle) over(prefix string) (log bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, m := range b.known {
		if strings.HasPrefix(key, prefix) {
			m.stop() // a failure logged after its end would mislead
			log = log || m.open
			m.open = false
		}
	}
	return log
}

// end stops all timers.
func (b *bundle) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
}

func (b *bundle) forget() {
	for _, m := range b.known {
		m.stop()
	}
	b.known = map[string]*bundled{}
}
