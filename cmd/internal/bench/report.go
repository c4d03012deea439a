package bench

import "time"

// Report is the result of a run. A measure that was not taken is null in JSON.
type Report struct {
	Began       time.Time `json:"began"`
	TookSeconds float64   `json:"took_seconds"`
	Database    Server    `json:"database"`
	Machine     Machine   `json:"machine"` // that the run was on, not the server's
	Options     Options   `json:"options"`

	Writers []WriterFigure  `json:"writers"`
	Drain   []DrainFigure   `json:"drain"`
	Pages   *PageFigures    `json:"pages"`
	Consume *ConsumeFigures `json:"consume"`
	Latency *LatencyFigure  `json:"latency"`
	Idle    *IdleFigures    `json:"idle"`

	Rows Tally `json:"rows"`
	// Kept is the prefix of the tables that Config.Keep left in the database.
	Kept string `json:"kept,omitempty"`
}

// Server describes the database that was measured, and how safe its commits are.
type Server struct {
	Kind    string `json:"kind"` // the dialect's name
	Version string `json:"version"`
	// Durable reports whether commits survive a power cut, as far as rowfeed can tell.
	Durable bool `json:"durable"`
	// Settings are those of a session that rowfeed opens.
	Settings map[string]string `json:"settings"`
}

// Machine describes the machine that the run was on.
type Machine struct {
	Host string `json:"host"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// Options are the settings of a run.
type Options struct {
	Measures    []string `json:"measures"`
	Rows        int      `json:"rows"`
	Payload     int      `json:"payload"`
	Writers     int      `json:"writers"`
	Seconds     float64  `json:"seconds"`
	Rate        float64  `json:"rate"`
	Repetitions int      `json:"repetitions"`
}

// WriterFigure is what writers reached with one kind of statement.
type WriterFigure struct {
	Write   string `json:"write"`   // INSERT or UPDATE
	Capture string `json:"capture"` // none, trigger, app or column
	// Commits is the commits per second of all writers together, the median of the repetitions.
	Commits float64 `json:"commits_per_second"`
	// Ratio compares Commits with the commits without capture of the same repetition. It is the median; RatioLow and
	// RatioHigh are the extremes.
	Ratio     float64 `json:"ratio"`
	RatioLow  float64 `json:"ratio_low"`
	RatioHigh float64 `json:"ratio_high"`
	// LongestMS is the duration of the longest transaction.
	LongestMS float64 `json:"longest_ms"`
	// Retries counts transactions that the database refused, because of deadlocks for example.
	Retries int64 `json:"retries"`
}

// DrainFigure is how fast a backlog is published in batches of one size, on a database without other load.
// Outside of a bench, rowfeed adapts the size by itself.
type DrainFigure struct {
	Batch int `json:"batch"`
	Keys  int `json:"keys"` // of each backlog
	// New is the keys per second that have no position yet. Again is the keys per second that had a position, as
	// updated rows have. Both are medians of the repetitions.
	New   float64 `json:"new_keys_per_second"`
	Again float64 `json:"again_keys_per_second"`
}

// PageFigures are the costs of reading.
type PageFigures struct {
	Entries int `json:"entries"` // of the feed
	Page    int `json:"page"`    // entries asked for
	// Speed is that of one reader, page by page from the beginning to the head.
	Speed float64 `json:"entries_per_second"`
	// StartMS, MiddleMS and EndMS are the duration of one fetch at the start, in the middle and at the end of the
	// feed. They do not differ much, however long the feed is.
	StartMS  float64 `json:"start_ms"`
	MiddleMS float64 `json:"middle_ms"`
	EndMS    float64 `json:"end_ms"`
}

// ConsumeFigures is how fast a new consumer catches up with a feed. The consumer fetches entries, calls a
// handler that only counts them, and stores its cursor, each batch in a transaction.
type ConsumeFigures struct {
	Entries int     `json:"entries"` // of the feed
	Speed   float64 `json:"entries_per_second"`
}

// LatencyFigure is the time from a writer's commit to a consumer's handler. The publisher and the consumer run
// in this process, with rowfeed's defaults.
type LatencyFigure struct {
	Rate    float64 `json:"rate"`               // commits per second that were asked for
	Reached float64 `json:"reached_per_second"` // commits per second that the database managed
	Commits int     `json:"commits"`
	P50MS   float64 `json:"p50_ms"`
	P99MS   float64 `json:"p99_ms"`
	MaxMS   float64 `json:"max_ms"`
}

// IdleFigures are what one process sends to an idle database: statements, and the beginnings and ends of
// transactions. Each is a round trip.
type IdleFigures struct {
	// Publisher is of a process that publishes one feed. Consumer is of a process that also consumes that feed, and
	// is at its head.
	Publisher float64 `json:"publisher_statements_per_second"`
	Consumer  float64 `json:"with_consumer_statements_per_second"`
	Seconds   float64 `json:"seconds"` // of each count
}

// Tally compares the rows that were written with the entries that were read. A run ends with an error if they
// differ.
type Tally struct {
	// Written is the number of rows of the tables after all writers have ended. Read is the number of entries
	// that a reader got of their feeds from the beginning.
	Written int `json:"written"`
	Read    int `json:"read"`
	// Positions is the number of positions given. A key that was written several times gets one for each batch.
	Positions int `json:"positions"`
}
