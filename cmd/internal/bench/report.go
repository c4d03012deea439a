package bench

import (
	"context"
	"os"
	"runtime"
	"time"
)

// Report is what a run has found. A measure that was not taken is null in JSON.
type Report struct {
	Began       time.Time `json:"began"`
	TookSeconds float64   `json:"took_seconds"`
	Database    Server    `json:"database"`
	Machine     Machine   `json:"machine"` // on which the run was, not the server's
	Options     Options   `json:"options"`

	Writers []WriterFigure  `json:"writers"`
	Drain   []DrainFigure   `json:"drain"`
	Pages   *PageFigures    `json:"pages"`
	Consume *ConsumeFigures `json:"consume"`
	Latency *LatencyFigure  `json:"latency"`
	Idle    *IdleFigures    `json:"idle"`

	Rows Tally `json:"rows"`
	// Kept is the prefix of the tables that were left, as was asked for.
	Kept string `json:"kept,omitempty"`
}

// Machine is where a run was.
type Machine struct {
	Host string `json:"host"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// Options are those of a run.
type Options struct {
	Measures    []string `json:"measures"`
	Rows        int      `json:"rows"`
	Payload     int      `json:"payload"`
	Writers     int      `json:"writers"`
	Seconds     float64  `json:"seconds"`
	Rate        float64  `json:"rate"`
	Repetitions int      `json:"repetitions"`
}

// Tally is how the rows of a run add up: what was written was published, and read. A run in
// which it does not ends with an error.
type Tally struct {
	// Written are the rows of the tables when everybody had ended, Read the entries that a
	// reader who began at the beginning got of them, or that the handler had.
	Written int `json:"written"`
	Read    int `json:"read"`
	// Positions were given: one to each key of a batch, however often it was written.
	Positions int `json:"positions"`
}

// begin is a report without figures.
func (r *run) begin(ctx context.Context) (*Report, error) {
	server, err := r.server(ctx)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Report{Began: time.Now().UTC().Truncate(time.Second), Database: server,
		Machine: Machine{Host: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			Go: runtime.Version()},
		Options: Options{Measures: r.taken(), Rows: r.Config.Rows, Payload: r.Payload, Writers: r.Writers,
			Seconds: seconds(r.Window), Rate: r.Rate, Repetitions: r.Repetitions}}, nil
}
