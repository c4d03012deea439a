package cli

import (
	"strings"
	"sync"
	"time"
)

// bundleEvery is how often a repeated message is logged.
const bundleEvery = time.Minute

// bundle decides which of repeated messages are logged: the first at once, then one a minute with the number of those
// in between. The zero value is ready for use.
type bundle struct {
	now func() time.Time // nil: time.Now

	mu    sync.Mutex
	known map[string]*bundled
}

// maxBundled is how many messages a bundle knows before it forgets all.
const maxBundled = 1000

// bundled is what a bundle knows of one message.
type bundled struct {
	loggedAt time.Time
	omitted  int  // since then
	open     bool // logged since the end was last logged
}

// again tells whether to log a message, and how many like it were omitted before.
func (b *bundle) again(key string) (omitted int, log bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now
	if b.now != nil {
		now = b.now
	}
	m := b.known[key]
	if m == nil {
		if len(b.known)%maxBundled == 0 { // texts of errors may vary without end
			b.known = map[string]*bundled{}
		}
		m = &bundled{}
		b.known[key] = m
	}
	if !m.loggedAt.IsZero() && now().Sub(m.loggedAt) < bundleEvery {
		m.omitted++
		return 0, false
	}
	omitted = m.omitted
	*m = bundled{loggedAt: now(), open: true}
	return omitted, true
}

// over tells whether to log that the messages whose keys begin with prefix have ended: once for those that were logged.
func (b *bundle) over(prefix string) (log bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, m := range b.known {
		if strings.HasPrefix(key, prefix) && m.open {
			m.open, log = false, true
		}
	}
	return log
}
