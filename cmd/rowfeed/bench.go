package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/bench"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type benchOptions struct {
	bench.Config
	seconds cli.Seconds
	rate    cli.Rate
	clean   bool

	patience time.Duration // of clean; tests set it
}

func newBench(a *cli.App) *cobra.Command {
	o := &benchOptions{seconds: cli.Seconds(2 * time.Second), rate: cli.Rate{PerSecond: 200}, patience: bench.Patience}
	cmd := &cobra.Command{
		Use:   "bench [MEASURE…]",
		Short: "Measure the speed of rowfeed on this database, with its own tables",
		Long: `Measures rowfeed on this database, with nothing to prepare: rowfeed's tables need not
exist. The command creates its own tables under an unused prefix (rfbench and four more
characters). It writes to them, publishes and reads them, and removes them at the end,
also after Ctrl-C or an error. It does not touch your feeds and tables. It does load the
database: its writes go to the log, to replicas, and into backups that run at the time.
Before it starts, it prints what it will create. A SQLite file does not become smaller
again until VACUUM.

The measures are these; without arguments, all of them:

  writers   commits/s of --writers at once, without capture and with each (trigger, app,
            column), in turns; INSERT and UPDATE; the ratio to no capture
  drain     keys/s of publishing a backlog of --rows, by size of batch
  pages     entries/s of reading from the beginning; ms of a page of 1000 at the start,
            in the middle and at the end
  consume   entries/s of a new consumer from the beginning, whose handler only counts
  latency   ms from a commit to a consumer's handler, at --rate
  idle      statements/s of a process with an idle feed

Figures are medians of --repetitions. If the database also does other work, only the
ratios are meaningful. The report includes the versions, and the settings that decide
whether a commit is durable. At the end the command counts the rows: the run fails
unless every row was written, published and read.

A run that was killed (kill -9, a power cut) leaves its tables behind. --clean removes
them, and those that --keep has left. It keeps the tables of runs that are still
working; to find out whether a run is, it needs up to 20 seconds.

With --json: {"database":{…},"machine":{…},"options":{…},"writers":[…],"drain":[…],
"pages":{…},"consume":{…},"latency":{…},"idle":{…},
"rows":{"written":…,"read":…,"positions":…}}; a measure that was not requested is null.
With --clean:
{"removed":[{"prefix":"rfbenchx7k2_","owner":"…","began":"…"}],"at_work":[]}.`,
		Example: `  rowfeed bench --db postgres://me:secret@localhost/shop
  rowfeed bench writers drain --rows 200000 --writers 16
  rowfeed bench latency --rate 1000/s --seconds 10 --repetitions 1
  rowfeed bench --clean`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.clean && len(args) > 0 {
				return cli.WrongUse(cmd, "--clean: %q is one argument too many", args[0])
			}
			o.Measures = args
			return o.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Rows, "rows", 50_000, "number of `rows` in each table")
	f.IntVar(&o.Payload, "payload", 200, "number of `bytes` in each row, not counting its key")
	f.IntVar(&o.Writers, "writers", 8, "number of `writers` at the same time")
	f.Var(&o.seconds, "seconds", "how long writers write, in each repetition")
	f.Var(&o.rate, "rate", "commits per second of the measure latency")
	f.IntVar(&o.Repetitions, "repetitions", 3, "repetitions of each figure")
	f.BoolVar(&o.Keep, "keep", false, "keep the tables; --clean removes them")
	f.BoolVar(&o.clean, "clean", false, "remove the tables that earlier runs have left, and measure nothing")
	a.AddOutput(cmd, true)
	return cmd
}

func (o *benchOptions) run(ctx context.Context, a *cli.App) error {
	cfg, _, err := a.Settings()
	if err != nil {
		return err
	}
	if o.clean {
		return o.runClean(ctx, a, cfg)
	}
	o.URL, o.DB, o.Rate = a.URL, cfg, o.rate.PerSecond
	o.Window = time.Duration(o.seconds)
	steps := a.NewSteps()
	o.Planned = func(p bench.Plan) error { return o.printPlan(a, p) }
	o.Doing = func(what string, behind float64) {
		steps.Begin(what, behind)
		if a.OnBench != nil {
			a.OnBench(what)
		}
	}
	report, err := bench.Run(ctx, o.Config)
	steps.Done()
	if err != nil {
		// After an interruption stderr says whether tables are left; other errors are reported as usual.
		var left *bench.LeftError
		switch {
		case ctx.Err() == nil:
		case errors.As(err, &left):
			fmt.Fprintln(a.Stderr, "rowfeed: "+a.ErrorText(left))
		case !o.Keep:
			fmt.Fprintln(a.Stderr, "rowfeed: what the bench had made is removed")
		}
		return err
	}
	if a.JSON {
		return a.PrintJSON(struct {
			Rowfeed string `json:"rowfeed"`
			*bench.Report
		}{buildOf().String(), report})
	}
	return o.show(a, report)
}

// printPlan prints on stderr what the run will create; stdout is for the figures.
func (o *benchOptions) printPlan(a *cli.App, p bench.Plan) error {
	where := ""
	if p.Schema != "" {
		where = " in " + p.Schema
	}
	what := fmt.Sprintf("%s of %s rows, %s, beside rowfeed's own",
		cli.Plural(int64(p.Tables), "table"), bench.Count(float64(p.Rows)), p.Size())
	if p.Tables == 0 {
		what = "small tables, beside rowfeed's own"
	}
	end := "removes them at the end, and after Ctrl-C"
	if o.Keep {
		end = "leaves them, as --keep asks: `rowfeed bench --clean` removes them"
	}
	_, err := fmt.Fprintf(a.Stderr, `rowfeed bench on %s (%s)
  makes    %s*%s: %s
  takes    about %s, and up to %d connections
  loads    the database while it runs, and all that is on it
  then     %s
`, open.Redact(a.URL), p.Database, p.Prefix, where, what, roughly(p.Duration), p.Connections, end)
	return err
}

// roughly rounds an estimated duration for display.
func roughly(d time.Duration) string {
	if d < 90*time.Second {
		return cli.Plural(max(int64(d.Round(time.Second)/time.Second), 1), "second")
	}
	return cli.Plural(int64(d.Round(time.Minute)/time.Minute), "minute")
}

func (o *benchOptions) runClean(ctx context.Context, a *cli.App, cfg rowfeed.Config) error {
	cleaned, err := bench.Clean(ctx, a.URL, cfg, o.patience, func(sets int) {
		fmt.Fprintf(a.Stderr, "rowfeed bench: found tables of %s; looking for up to %s which are at work\n",
			cli.Plural(int64(sets), "run"), o.patience)
	})
	if err != nil {
		return err
	}
	switch {
	case a.JSON:
		return a.PrintJSON(cleaned)
	case len(cleaned.Removed)+len(cleaned.AtWork) == 0:
		return a.PrintLine("%s: there are no tables of earlier benches", open.Redact(a.URL))
	}
	for _, l := range cleaned.Removed {
		began := l.Began.Format(time.RFC3339)
		if err := a.PrintLine("%s: removed; %s made it at %s", l.Prefix, l.Owner, began); err != nil {
			return err
		}
	}
	for _, l := range cleaned.AtWork {
		if err := a.PrintLine("%s: not removed: %s has used it since %s",
			l.Prefix, l.Owner, l.Began.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

func (o *benchOptions) show(a *cli.App, r *bench.Report) error {
	for _, print := range []func(*cli.App, *bench.Report) error{
		showServer, showWriters, showDrain, showPages, showConsume, showLatency, showIdle,
	} {
		if err := print(a, r); err != nil {
			return err
		}
	}
	end := "everything removed"
	if r.Kept != "" {
		end = "tables " + r.Kept + "* left: `rowfeed bench --clean` removes them"
	}
	return a.PrintLine("%s rows written, all of them published and read; %s positions given; %.0f s; %s",
		bench.Count(float64(r.Rows.Written)), bench.Count(float64(r.Rows.Positions)), r.TookSeconds, end)
}

func showServer(a *cli.App, r *bench.Report) error {
	var settings []string
	for _, name := range slices.Sorted(maps.Keys(r.Database.Settings)) {
		settings = append(settings, name+"="+r.Database.Settings[name])
	}
	durable := "commits are safe after a power cut"
	if !r.Database.Durable {
		durable = "COMMITS MAY BE FORGOTTEN after a power cut: figures of a server that is safe are lower"
	}
	return a.PrintLine(
		"%s: %s\n  %s\n%s on %s, %s CPUs (%s/%s); %d rows of %d bytes, %d writers, %g s, %d repetitions\n",
		r.Database.Version, strings.Join(settings, ", "), durable, buildOf(), r.Machine.Host,
		fmt.Sprint(r.Machine.CPUs), r.Machine.OS, r.Machine.Arch, r.Options.Rows, r.Options.Payload,
		r.Options.Writers, r.Options.Seconds, r.Options.Repetitions)
}

func showWriters(a *cli.App, r *bench.Report) error {
	var rows []table.Row
	for _, w := range r.Writers {
		ratio := fmt.Sprintf("%.2f (%.2f–%.2f)", w.Ratio, w.RatioLow, w.RatioHigh)
		rows = append(rows,
			table.Row{w.Write, w.Capture, bench.Count(w.Commits), ratio, fmt.Sprintf("%.1f", w.LongestMS), w.Retries})
	}
	return showTable(a, table.Row{"writers", "capture", "commits/s", "÷ no capture", "longest, ms", "retries"}, rows)
}

func showDrain(a *cli.App, r *bench.Report) error {
	var rows []table.Row
	for _, d := range r.Drain {
		rows = append(rows, table.Row{d.Batch, bench.Count(float64(d.Keys)), bench.Count(d.New), bench.Count(d.Again)})
	}
	return showTable(a, table.Row{"drain: batch", "keys", "new keys/s", "known keys/s"}, rows)
}

func showPages(a *cli.App, r *bench.Report) error {
	if r.Pages == nil {
		return nil
	}
	p := r.Pages
	return showTable(a, table.Row{"pages: entries", "entries/s", fmt.Sprintf("ms per %d at the start", p.Page),
		"in the middle", "at the end"},
		[]table.Row{{bench.Count(float64(p.Entries)), bench.Count(p.Speed), fmt.Sprintf("%.2f", p.StartMS),
			fmt.Sprintf("%.2f", p.MiddleMS), fmt.Sprintf("%.2f", p.EndMS)}})
}

func showConsume(a *cli.App, r *bench.Report) error {
	if r.Consume == nil {
		return nil
	}
	return showTable(a, table.Row{"consume: entries", "entries/s"},
		[]table.Row{{bench.Count(float64(r.Consume.Entries)), bench.Count(r.Consume.Speed)}})
}

func showLatency(a *cli.App, r *bench.Report) error {
	if r.Latency == nil {
		return nil
	}
	l := r.Latency
	return showTable(a,
		table.Row{"latency: commits", "asked for, /s", "reached, /s", "p50, ms", "p99, ms", "longest, ms"},
		[]table.Row{{bench.Count(float64(l.Commits)), l.Rate, l.Reached, fmt.Sprintf("%.2f", l.P50MS),
			fmt.Sprintf("%.2f", l.P99MS), fmt.Sprintf("%.2f", l.MaxMS)}})
}

func showIdle(a *cli.App, r *bench.Report) error {
	if r.Idle == nil {
		return nil
	}
	return showTable(a, table.Row{"idle: one quiet process", "statements/s"},
		[]table.Row{{"publisher", fmt.Sprintf("%.1f", r.Idle.Publisher)},
			{"publisher and consumer", fmt.Sprintf("%.1f", r.Idle.Consumer)}})
}

// showTable prints a table, or nothing if it has no rows.
func showTable(a *cli.App, header table.Row, rows []table.Row) error {
	if len(rows) == 0 {
		return nil
	}
	return a.PrintTable(header, rows)
}
